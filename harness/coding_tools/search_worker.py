"""The process that searches: reads an order as one line of JSON, prints one line of JSON a match.

It may be killed at any moment. Knows nothing of the harness that started it.
"""

import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from harness.coding_tools.text_file import NotText, load
from harness.result_events import FOLDER
from harness.workspace import is_protected

MAX_FILE_BYTES = 5_000_000
MAX_LINES = 200
_LINE_CHARS = 300
_LEFT_OUT = frozenset({".venv", "node_modules", "__pycache__", FOLDER})


def main() -> None:
    """Search as ordered on the input, print what is found, then what was skipped."""
    order = json.loads(sys.stdin.buffer.readline())
    if hasattr(signal, "alarm"):
        # A pattern that never ends must not outlive a harness that died: this ends even running C code.
        signal.alarm(int(order["seconds"]) + 2)
    try:
        pattern = re.compile(order["pattern"])
    except (re.error, OverflowError, RecursionError) as error:
        _tell({"error": str(error)})
        return
    root, skipped, count = Path(order["root"]), Counter[str](), 0
    for path in _files(Path(order["start"]), root, skipped):
        for number, line in _matches(path, pattern, skipped):
            if count == MAX_LINES:
                _tell({"full": True})
                return
            count += 1
            _tell({"line": f"{path.relative_to(root).as_posix()}:{number}: {line}"})
    _tell({"skipped": dict(skipped)})


def _files(start: Path, root: Path, skipped: Counter[str]) -> Iterator[Path]:
    """Yield the files below `start` in a stable order; links are not followed."""
    if not start.is_dir():
        yield start
        return
    for folder, folders, files in os.walk(start):
        for name in list(folders):
            if is_protected(name) or name in _LEFT_OUT:
                folders.remove(name)
                skipped[f"folder `{name}`"] += 1
        folders.sort()
        for name in sorted(files):
            path = Path(folder, name)
            if is_protected(name):
                skipped["protected"] += 1
            elif path.is_symlink():
                skipped["link"] += 1
            else:
                yield path


def _matches(path: Path, pattern: re.Pattern[str], skipped: Counter[str]) -> Iterator[tuple[int, str]]:
    try:
        text = load(path, MAX_FILE_BYTES).text
    except (NotText, OSError) as error:
        reason = str(error) if isinstance(error, NotText) else "unreadable"
        skipped[reason] += 1
        return
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if match := pattern.search(line):
            first = max(0, match.start() - _LINE_CHARS // 3) if len(line) > _LINE_CHARS else 0
            last = first + _LINE_CHARS
            yield number, ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


def _tell(word: dict[str, object]) -> None:
    print(json.dumps(word), flush=True)
