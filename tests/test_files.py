"""read, write and edit on real files: what a model sees, and what is left on disk."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.coding_tools.files import file_tools
from harness.coding_tools.text_file import NotText, detect_encoding
from harness.tools import ToolError
from harness.workspace import Workspace

CHINESE = "项目的日志：连接超时，原因还没有确认。\n第二行说明检查的结果。\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def call(root: Path, name: str, **arguments: object) -> str:
    tools = {tool.name: tool for tool in file_tools(Workspace(root, "work"))}
    return asyncio.run(tools[name].run(arguments))


def preview(root: Path, name: str, **arguments: object) -> str:
    tool = {tool.name: tool for tool in file_tools(Workspace(root, "work"))}[name]
    assert tool.asks and tool.preview
    return tool.preview(arguments)


def test_read_returns_the_text_itself(root: Path) -> None:
    (root / "a.txt").write_text("one\ntwo")
    assert call(root, "read", path="a.txt") == "one\ntwo"
    (root / "empty").write_text("")
    assert call(root, "read", path="empty") == "[The file is empty.]"


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_long_file_is_cut_and_says_how_to_read_on(root: Path, end: str) -> None:
    lines = [f"line {number}" for number in range(1, 5001)]
    (root / "long.txt").write_text("\n".join(lines) + end)
    first = call(root, "read", path="long.txt").split("\n")
    assert first[:2000] == lines[:2000]
    assert first[2000:] == ["[Lines 1-2000 of 5,000 are shown. Read on with offset=2001.]"]
    last = call(root, "read", path="long.txt", offset=4999, limit=50)
    assert last == "line 4999\nline 5000\n[Lines 4999-5000 of 5,000 are shown.]"
    middle = call(root, "read", path="long.txt", offset=10, limit=1)
    assert middle == "line 10\n[Lines 10-10 of 5,000 are shown. Read on with offset=11.]"
    for offset in (5001, 9000):
        with pytest.raises(ToolError, match="has only 5,000 lines"):
            call(root, "read", path="long.txt", offset=offset)


@given(lines=st.lists(st.text("ab文", max_size=9), max_size=30), offset=st.integers(1, 40), limit=st.integers(1, 40))
def test_reading_on_shows_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], offset: int, limit: int
) -> None:
    root = tmp_path_factory.getbasetemp()
    text = "\n".join(lines)
    (root / "f").write_text(text)
    real = text.splitlines(keepends=True)
    try:
        shown = call(root, "read", path="f", offset=offset, limit=limit)
    except ToolError:
        assert offset > len(real)
        return
    if text:
        wanted = "".join(real[offset - 1 : offset - 1 + limit])
        assert shown.startswith(wanted)
        assert ("offset=" in shown) == (offset - 1 + limit < len(real))


def test_characters_are_bounded_too(root: Path) -> None:
    (root / "wide.txt").write_text("".join(f"{number:0>999}\n" for number in range(100)))
    shown = call(root, "read", path="wide.txt")
    assert shown.endswith("[Lines 1-40 of 100 are shown. Read on with offset=41.]")
    (root / "one.txt").write_text("x" * 100_000 + "\nend\n")
    shown = call(root, "read", path="one.txt")
    assert shown.startswith("x" * 40_000 + "\n[Line 1 has more than 40,000 characters")
    assert call(root, "read", path="one.txt", offset=2).startswith("end\n")


def test_a_huge_file_is_never_loaded(root: Path) -> None:
    subprocess.run(["truncate", "-s", "5G", str(root / "sparse")], check=True)
    with pytest.raises(ToolError, match=r"binary file of 5,368,709,120 bytes"):
        call(root, "read", path="sparse")
    with (root / "huge.log").open("w") as stream:
        stream.writelines(f"line {number}\n" for number in range(1, 40_001))
        stream.seek(5 * 1024**3)
        stream.write("end")
    shown = call(root, "read", path="huge.log", offset=2, limit=1)
    assert shown == "line 2\n[Lines 2-2 of a file of 5,368,709,123 bytes are shown. Read on with offset=3.]"
    with pytest.raises(ToolError, match="too far in"):
        call(root, "read", path="huge.log", offset=90_000)
    with pytest.raises(ToolError, match="binary"):
        call(root, "read", path="huge.log", offset=40_001)


def test_what_is_no_text_file(root: Path) -> None:
    (root / "data.bin").write_bytes(b"\x7fELF\0\0\1")
    with pytest.raises(ToolError, match="binary file of 7 bytes"):
        call(root, "read", path="data.bin")
    os.mkfifo(root / "pipe")
    for name, more in (("read", {}), ("write", {"content": "x"}), ("edit", {"old": "a", "new": "b"})):
        with pytest.raises(ToolError, match="pipe"):
            call(root, name, path="pipe", **more)
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("")
    (root / ".env").write_text("")
    assert call(root, "read", path=".") == "data.bin\npipe\nsrc/"
    with pytest.raises(ToolError, match="cannot be read: Not a directory"):
        call(root, "read", path="data.bin/x")


def test_a_missing_file_names_near_ones(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src" / "calculator.py").write_text("")
    (root / ".env.calculator").write_text("")
    for path in ("calculator.py", "src/calculater.py"):
        with pytest.raises(ToolError, match=r"does not exist. Near it: `src/calculator.py`\.$"):
            call(root, "read", path=path)
    with pytest.raises(ToolError, match="List the folder"):
        call(root, "read", path="zzz")


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (CHINESE.encode("gb18030"), "[Read as gb18030, which is assumed: the file does not say.]"),
        (CHINESE.encode("utf-16"), "[The encoding is utf-16-le.]"),
        (b"\xfe\xff" + CHINESE.encode("utf-16-be"), "[The encoding is utf-16-be.]"),
        (CHINESE.encode("utf-8-sig"), ""),
        (CHINESE.encode() * 10_000, None),
    ],
)
def test_encodings_are_read_and_named(root: Path, data: bytes, note: str | None) -> None:
    (root / "f.txt").write_bytes(data)
    shown = call(root, "read", path="f.txt")
    assert shown.startswith(CHINESE)
    if note is not None:
        assert shown == CHINESE + note


def test_latin_text_is_not_taken_for_chinese(root: Path) -> None:
    (root / "f.txt").write_bytes("répéter l'école\n".encode("latin-1"))
    shown = call(root, "read", path="f.txt")
    assert shown == "r\ufffdp\ufffdter l'\ufffdcole\n[Bytes that are not UTF-8 are shown as U+FFFD.]"
    with pytest.raises(ToolError, match="not valid"):
        call(root, "edit", path="f.txt", old="ter", new="x")


@given(st.binary(max_size=200))
def test_any_bytes_get_an_encoding_or_are_binary(data: bytes) -> None:
    try:
        encoding = detect_encoding(data, whole=True)
    except NotText:
        assert b"\0" in data
        return
    if encoding.name == "utf-8" and encoding.sure:
        data.removeprefix(encoding.mark).decode("utf-8", "replace")


def test_write_creates_and_replaces(root: Path) -> None:
    assert call(root, "write", path="a/b/c.txt", content="x\ny\n") == "Created `a/b/c.txt` (4 characters, 2 lines)."
    (root / "a/b/c.txt").chmod(0o755)
    said = call(root, "write", path="a/b/c.txt", content="文\ud800")
    assert said == "Replaced the whole of `a/b/c.txt` (4 bytes before; now 2 characters, 1 lines)."
    assert (root / "a/b/c.txt").read_text() == "文\ufffd"
    assert (root / "a/b/c.txt").stat().st_mode & 0o777 == 0o755
    assert os.listdir(root / "a/b") == ["c.txt"]
    with pytest.raises(ToolError, match="is a folder"):
        call(root, "write", path="a", content="x")
    with pytest.raises(ToolError, match="cannot be written"):
        call(root, "write", path="a/b/c.txt/d", content="x")
    with pytest.raises(ToolError, match="Nothing was written"):
        call(root, "write", path="big", content="x" * 8_000_001)
    assert os.listdir(root) == ["a"]


def test_write_goes_through_a_link_and_not_over_it(root: Path) -> None:
    (root / "real.txt").write_text("old")
    (root / "link.txt").symlink_to("real.txt")
    call(root, "write", path="link.txt", content="new")
    assert (root / "real.txt").read_text() == "new"
    assert (root / "link.txt").is_symlink()
    (root / "out").symlink_to(root.parent / "elsewhere.txt")
    with pytest.raises(ToolError, match="outside"):
        call(root, "write", path="out", content="new")
    assert not (root.parent / "elsewhere.txt").exists()


def test_edit_replaces_the_one_place(root: Path) -> None:
    (root / "a.py").write_text("a = 1\nb = 2\nc = 3\n")
    (root / "a.py").chmod(0o750)
    assert call(root, "edit", path="a.py", old="b = 2", new="b = 20") == (
        "Edited `a.py` at line 2 (18 characters before, 19 now)."
    )
    assert (root / "a.py").read_text() == "a = 1\nb = 20\nc = 3\n"
    assert (root / "a.py").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("x = 1", r"occurs 2 times in `a.py` \(lines 1, 3\).*Add lines"),
        ("abab", r"occurs 2 times"),
        ("def fo():", r"nearest lines are:\n4: def foo\(\):"),
        ("    return  1", "No line comes near|nearest"),
        ("def foo():\nreturn 1", "Line 4 differs from it only in blanks"),
        ("qqqqqqqq", "No line comes near it"),
        ("", "`old` is empty"),
        ("  \n", "only blanks"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(root: Path, old: str, said: str) -> None:
    text = "x = 1\ny = 2\nx = 1\ndef foo():\n    return 1\nababab\n"
    (root / "a.py").write_text(text)
    for act in (call, preview):
        with pytest.raises(ToolError, match=f"(?s){said}"):
            act(root, "edit", path="a.py", old=old, new="z")
    assert (root / "a.py").read_text() == text


@pytest.mark.parametrize("old", ["two\nthree", "two\r\nthree"])
def test_crlf_is_kept(root: Path, old: str) -> None:
    (root / "dos.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    assert call(root, "read", path="dos.txt") == "one\ntwo\nthree\n[Lines end in CR LF; `edit` keeps that.]"
    call(root, "edit", path="dos.txt", old=old, new="2\n3\n4")
    assert (root / "dos.txt").read_bytes() == b"one\r\n2\r\n3\r\n4\r\n"


def test_mixed_line_ends_stay_where_they_are(root: Path) -> None:
    (root / "mixed.txt").write_bytes(b"a\nb\nc\nd\r\ne\r\n")
    call(root, "edit", path="mixed.txt", old="d\ne", new="d\nf")
    call(root, "edit", path="mixed.txt", old="a\nb", new="a\ng")
    assert (root / "mixed.txt").read_bytes() == b"a\ng\nc\nd\r\nf\r\n"


@pytest.mark.parametrize("name", ["gb18030", "utf-16", "utf-8-sig"])
def test_edit_keeps_the_encoding(root: Path, name: str) -> None:
    (root / "f.txt").write_bytes(CHINESE.encode(name))
    call(root, "edit", path="f.txt", old="还没有确认", new="已经确认 🙂")
    assert (root / "f.txt").read_bytes() == CHINESE.replace("还没有确认", "已经确认 🙂").encode(name)


def test_edit_of_a_missing_or_binary_file(root: Path) -> None:
    with pytest.raises(ToolError, match="does not exist.*use `write`"):
        call(root, "edit", path="no.txt", old="a", new="b")
    (root / "b").write_bytes(b"a\0b")
    with pytest.raises(ToolError, match="is binary and was not changed"):
        call(root, "edit", path="b", old="a", new="c")


def test_the_preview_is_a_bounded_diff_and_changes_nothing(root: Path) -> None:
    (root / "a.py").write_text("a = 1\nb = 2\n")
    shown = preview(root, "edit", path="a.py", old="b = 2", new="b = 3")
    assert shown == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3"
    assert preview(root, "write", path="new.py", content="x\n").endswith("@@ -0,0 +1 @@\n+x")
    assert preview(root, "write", path="a.py", content="a = 1\nb = 2\n") == "(no line of a.py changes)"
    long = preview(root, "write", path="a.py", content="line\n" * 3000)
    assert len(long.splitlines()) == 201 and "more lines" in long
    huge = preview(root, "write", path="a.py", content="line\n" * 100_000)
    assert len(huge) < 13_000
    assert (root / "a.py").read_text() == "a = 1\nb = 2\n"
    assert os.listdir(root) == ["a.py"]
    with pytest.raises(ToolError, match="outside"):
        preview(root, "write", path="../x", content="x")
