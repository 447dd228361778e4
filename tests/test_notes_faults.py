"""Notes where the disk, a name or a right is in the way: what is said is what was done, and nothing is lost."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.messages import clean
from harness.notes import acts
from harness.notes.folder import MOST_NOTES, look
from harness.notes.keeping import keep
from harness.notes.note import Note
from harness.places import notes_folder
from harness.tools import ToolError

NOBODY = 65534


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes: a full disk that has room for a note and none for the list."""
    resource, signal = pytest.importorskip("resource"), pytest.importorskip("signal")
    old, (soft, hard) = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)


@contextmanager
def nobody() -> Iterator[None]:
    """Be somebody whom the permissions of files bind."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_where_only_the_list_cannot_be_written_what_was_done_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "memory" / "x"
    folder.mkdir(parents=True)
    for number in range(60):
        (folder / f"title-{number}.md").write_text(f"# Title {number}\n\n{'words ' * 9}")
    keep(folder, "Old", "1")
    with small_files(1024):
        said = acts.remember(folder, {"title": "Deploy", "text": "fact"})
        assert said.startswith("Kept as `deploy`: [Deploy]") and "The list of the notes could not be written: " in said
        assert look(folder).note("deploy")
        said = acts.forget_note(folder, "old", "")
        assert said.startswith("Forgotten: `old`.") and "The next change makes it anew" in said
        assert not look(folder).note("old") and str(folder) not in said
        with pytest.raises(ToolError, match="Nothing was changed"):
            acts.remember(folder, {"title": "Large", "text": "y" * 2_000})
        assert not look(folder).note("large")
    keep(folder, "Newest", "x")
    assert look(folder).problems == () and not [each for each in os.listdir(folder) if each.startswith("tmp")]


def test_a_file_that_ends_in_md_twice_is_named_and_stands_for_no_other_note(tmp_path: Path) -> None:
    folder = tmp_path / "memory" / "x"
    keep(folder, "a", "one")
    for name in ("a.md.md", "zed.md.md", "index.md.md", "b.MD.md"):
        (folder / name).write_text("# b\n\ntwo")
    found = look(folder)
    assert [note.name for note in found.notes] == ["a"]
    assert [each.problem for each in found.problems] == ["notes_name"] * 4
    assert acts.recall(folder, "a.md") == "# a\n\none\n"
    with pytest.raises(ToolError, match="There is no note `zed.md` now"):
        acts.recall(folder, "zed.md")
    keep(folder, "zed", "3")
    assert acts.forget_note(folder, "zed.md", "").startswith("Forgotten: `zed`") and (folder / "zed.md.md").exists()


def test_a_file_called_as_the_list_but_for_its_case_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "memory" / "x"
    keep(folder, "a", "one")
    (folder / "INDEX.md").write_text("# An index\n\nof another kind")
    if len(os.listdir(folder)) < 3:
        pytest.skip("This disk takes both names for one file.")
    found = look(folder)
    assert [note.name for note in found.notes] == ["a"] and [each.problem for each in found.problems] == ["notes_name"]


def test_notes_beyond_the_most_are_not_said_to_be_gone(tmp_path: Path) -> None:
    folder = tmp_path / "memory" / "x"
    for number in range(MOST_NOTES + 5):
        note = Note(f"note-{number:03}", f"Note {number}", "text")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{note.name}.md").write_text(note.content)
        (folder / "index.md").write_text(f"{(folder / 'index.md').read_text() if number else ''}{note.line}\n")
    assert [each.problem for each in look(folder).problems] == ["notes_many"]
    (folder / "note-001.md").unlink()
    assert [each.problem for each in look(folder).problems] == ["notes_many", "notes_index_gone"]


@pytest.mark.parametrize("name", ["d" * 250, "字" * 83, os.fsdecode(b"caf\xe9"), "\U0001f30a" * 60 + "abc"])
def test_a_folder_of_any_name_has_notes(tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    source.mkdir()
    folder = notes_folder(tmp_path / "data", source)
    assert acts.remember(folder, {"title": "t", "text": "x"}).startswith("Kept as `t`")
    assert len(os.fsencode(folder.name)) <= 253 and look(folder).problems == ()
    assert folder.name.startswith(clean(name)[:3])


def test_a_short_name_of_a_folder_stands_whole_in_that_of_its_notes(tmp_path: Path) -> None:
    assert notes_folder(tmp_path, tmp_path / "tide-board").name.rpartition("-")[0] == "tide-board"


def test_a_file_in_the_place_of_the_folder_is_one_clear_line(tmp_path: Path) -> None:
    folder = tmp_path / "memory" / "x"
    folder.parent.mkdir()
    folder.write_text("mine")
    for act in (acts.drafted, acts.remember):
        with pytest.raises(ToolError) as caught:
            act(folder, {"title": "t", "text": "x"})
        assert str(caught.value) == (
            "The notes cannot be changed: a file stands where the folder of the notes should be. "
            "Nothing was changed; tell the user."
        )
    assert folder.read_text() == "mine" and [each.problem for each in look(folder).problems] == ["notes_folder"]


def test_a_folder_that_cannot_be_written_is_one_clear_line_and_its_notes_are_read() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "memory" / "x"
        keep(folder, "a", "one")
        for each in (Path(made), folder.parent, folder):
            each.chmod(0o555)
        for each in folder.iterdir():
            each.chmod(0o444)
        with nobody():
            for act in (
                lambda: acts.remember(folder, {"title": "t", "text": "x"}),
                lambda: acts.forget_note(folder, "a", ""),
            ):
                with pytest.raises(ToolError) as caught:
                    act()
                assert str(caught.value) == (
                    "The notes cannot be changed: the folder of the notes is read-only. "
                    "Nothing was changed; tell the user."
                )
            assert acts.recall(folder, "a") == "# a\n\none\n" and look(folder).problems == ()
        for each in (Path(made), folder.parent, folder):
            each.chmod(0o755)
