"""Where a user's own files lie that hold for every project."""

import os
from pathlib import Path

# Another folder for them, for a class or a test.
VARIABLE = "CONTEXT_LAB_HOME"


def home() -> Path | None:
    """Return the folder of the user's own AGENTS.md, SYSTEM.md and APPEND_SYSTEM.md; it need not be there.

    None where nobody can tell whose home it is.
    """
    if own := os.environ.get(VARIABLE):
        return Path(own)
    # The standard takes no relative path here.
    if (config := os.environ.get("XDG_CONFIG_HOME", "")) and Path(config).is_absolute():
        return Path(config) / "context-lab"
    try:
        return Path.home() / ".config" / "context-lab"
    except RuntimeError:
        return None
