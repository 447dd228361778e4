"""Starts the lab's one command, `server.py` at the top; the course's text names this place."""

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    # Python looks for modules beside the file that was named, which is this one.
    sys.path.insert(0, str(ROOT))
    runpy.run_path(str(ROOT / "server.py"), run_name="__main__")
