"""search on real files: what is found, what is skipped and said so, and patterns that never end."""

import asyncio
import os
import time
from pathlib import Path

import psutil
import pytest

from harness.coding_tools.search import search, search_tool
from harness.tools import ToolError
from harness.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("import os\n\ndef total(items):\n    return sum(items)\n")
    (root / "readme.md").write_text("The total is wrong.\n")
    return root


def find(root: Path, pattern: str, path: str | None = None) -> str:
    tool = search_tool(Workspace(root, "work"))
    assert not tool.asks
    return asyncio.run(tool.run({"pattern": pattern} | ({"path": path} if path else {})))


def workers() -> list[int]:
    mine = psutil.Process().children(recursive=True)
    return [process.pid for process in mine if "harness.coding_tools.search_worker" in " ".join(process.cmdline())]


def test_matching_lines_come_in_a_stable_order(root: Path) -> None:
    wanted = "readme.md:1: The total is wrong.\nsrc/app.py:3: def total(items):\n[2 matching lines.]"
    assert find(root, "total") == wanted
    assert find(root, r"^def \w+\(", "src") == "src/app.py:3: def total(items):\n[1 matching lines.]"
    assert find(root, "(?i)IMPORT", "src/app.py").startswith("src/app.py:1: import os\n")
    assert find(root, "nothing like it") == "[No line matches.]"


def test_what_is_skipped_is_said(root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("total")
    (root / ".env").write_text("total=secret")
    (root / "data.bin").write_bytes(b"total\0")
    (root / "big.txt").write_text("total\n" * 1_000_000)
    (root / "link.md").symlink_to("readme.md")
    os.mkfifo(root / "pipe")
    text = find(root, "total")
    assert text.splitlines()[:2] == ["readme.md:1: The total is wrong.", "src/app.py:3: def total(items):"]
    closing = text.splitlines()[2]
    for skipped in (
        "1 folder `.git`",
        "1 protected",
        "1 binary",
        "1 bigger than 5,000,000 bytes",
        "1 link",
        "1 unreadable",
    ):
        assert skipped in closing
    assert "secret" not in text


def test_other_encodings_and_long_lines(root: Path) -> None:
    (root / "zh.txt").write_bytes("原因还没有确认\r\n第二行的内容\r\n".encode("gb18030"))
    assert find(root, "没有确认$") == "zh.txt:1: 原因还没有确认\n[1 matching lines.]"
    (root / "long.txt").write_text("a" * 100_000 + "needle" + "b" * 100_000)
    shown = find(root, "needle").splitlines()[0]
    assert "needle" in shown and len(shown) < 400


def test_many_matches_are_cut_and_it_is_said(root: Path) -> None:
    (root / "many.txt").write_text("match\n" * 5000)
    text = find(root, "match")
    assert len(text.splitlines()) == 201
    assert text.endswith("[200 matching lines. There are more: narrow the pattern or the path.]")
    (root / "many.txt").write_text(("match" + "x" * 290 + "\n") * 5000)
    assert len(find(root, "match")) < 21_000


@pytest.mark.parametrize(
    ("pattern", "path", "said"),
    [
        ("(", ".", "no regular expression"),
        ("", ".", "1 to 1,000"),
        ("x" * 1001, ".", "1 to 1,000"),
        ("x", "../..", "outside"),
        ("x", ".git", "protected"),
        ("x", "app.py", "does not exist. Near it: `src/app.py`"),
    ],
)
def test_what_cannot_be_searched_says_why(root: Path, pattern: str, path: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        find(root, pattern, path)


def test_a_pattern_that_never_ends_is_cut_off_and_keeps_what_was_found(root: Path) -> None:
    (root / "readme.md").write_text("found\n")
    (root / "z.txt").write_text("a" * 60 + "!\n")
    began = time.monotonic()
    text = asyncio.run(search(Workspace(root, "w"), "found|(a+)+$", ".", seconds=2))
    assert text.startswith("readme.md:1: found\n[1 matching lines. Stopped after 2 s")
    assert time.monotonic() - began < 10
    assert workers() == []


def test_cancelling_ends_the_worker(root: Path) -> None:
    (root / "z.txt").write_text("a" * 60 + "!\n")

    async def go() -> None:
        task = asyncio.create_task(search(Workspace(root, "w"), "(a+)+$", ".", seconds=60))
        while not workers():
            await asyncio.sleep(0.05)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 20

    asyncio.run(go())
    assert workers() == []
