"""Starts the lab's one command, `server.py` at the top; the course's text names this place."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).resolve().parents[2] / "server.py"), run_name="__main__")
