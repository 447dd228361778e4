"""Fixtures that every test may use. They start nothing until a test asks for them.

`requests` is imported here since it warns while it is imported, which must not happen in a thread.
"""

import os
from pathlib import Path

import requests  # noqa: F401
from hypothesis import settings

from harness.rules.places import VARIABLE
from tests.browser_support import axe, chromium, page, tabs

__all__ = ["axe", "chromium", "page", "tabs"]

# Whoever runs the tests may have rules of their own; they must not stand in the prompts that are tested.
os.environ[VARIABLE] = str(Path(__file__).parent / "no-such-folder")

# Nor must what they do go to a Phoenix that happens to run.
os.environ["PHOENIX_COLLECTOR_ENDPOINT"] = "http://127.0.0.1:9"

# A busy machine is no fault of the code: no test here is about time.
settings.register_profile("lab", deadline=None)
settings.load_profile("lab")
