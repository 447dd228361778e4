"""A snapshot is the workspace as it was: whatever lies in it, whatever is changed after, and whatever is lost."""

import json
import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.coding_tools.workspace_copy import MAX_FILES
from harness.copies.manifest import load
from harness.copies.snapshots import restore, share, take
from harness.problems import Problem

HOUR = 3_600_000_000_000  # nanoseconds


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with some of everything."""
    root = tmp_path / "work"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "empty").mkdir(mode=0o750)
    (root / "src" / "app.py").write_text("x = 1\n")
    (root / "src" / "deep" / "same.py").write_text("x = 1\n")
    (root / "run.sh").write_text("exit 0\n")
    (root / "run.sh").chmod(0o755)
    (root / "closed.txt").write_text("closed\n")
    (root / "closed.txt").chmod(0o400)
    (root / "good").symlink_to("src/app.py")
    (root / "away").symlink_to("/etc")
    (root / "lost").symlink_to("no/such/file")
    os.utime(root / "run.sh", ns=(10**18, 10**18 + 7))
    return root


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "snapshots"


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Return all that lies in a folder: kind, permissions and content, and a file's time to the nanosecond."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            status, key = os.lstat(path), os.path.relpath(path, root)
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("folder", stat.S_IMODE(status.st_mode))
            elif stat.S_ISREG(status.st_mode):
                data = Path(path).read_bytes()
                found[key] = ("file", stat.S_IMODE(status.st_mode), status.st_mtime_ns, data)
    return found


def restored(store: Path, task: int, target: Path) -> dict[str, tuple[object, ...]]:
    restore(store, task, target)
    return tree(target)


def refused(store: Path, task: int, target: Path) -> Problem:
    with pytest.raises(Problem) as caught:
        restore(store, task, target)
    assert not target.exists()
    return caught.value


def contents(store: Path) -> list[Path]:
    return [path for path in (store / "objects").rglob("*") if path.is_file()]


def change_manifest(store: Path, task: int, change: Callable[[dict[str, object]], None]) -> None:
    place = store / f"{task}.json"
    body = json.loads(place.read_text())
    change(body)
    place.write_text(json.dumps(body))


def rewrite(path: Path, text: str) -> None:
    """Write a text of the same length, and set the file's time back as a command can."""
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # the clock of a file system goes in steps
        path.write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size and path.stat().st_mtime_ns == before.st_mtime_ns


def test_what_was_there_comes_back_and_a_content_is_kept_once(work: Path, store: Path, tmp_path: Path) -> None:
    before = tree(work)
    take(store, work, 0)
    assert restored(store, 0, tmp_path / "copy") == before
    assert len(contents(store)) == 3, "two files with the same text are one content"
    assert {stat.S_IMODE(path.stat().st_mode) for path in contents(store)} == {0o600}
    (work / "src" / "app.py").write_text("x = 2\n")
    shutil.rmtree(work / "src" / "deep")
    (work / "new").write_text("new")
    after = tree(work)
    take(store, work, 1)
    assert restored(store, 1, tmp_path / "later") == after
    assert restored(store, 0, tmp_path / "again") == before
    assert len(contents(store)) == 5


def test_a_snapshot_changes_nothing_in_the_workspace(work: Path, store: Path) -> None:
    def state() -> dict[str, tuple[int, ...]]:
        found = {path: path.lstat() for path in work.rglob("*")}
        return {str(path): (s.st_ino, s.st_ctime_ns, s.st_mtime_ns, s.st_mode) for path, s in found.items()}

    before = state()
    take(store, work, 0)
    take(store, work, 1)
    assert state() == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows tells no time of change")
def test_only_what_cannot_have_changed_is_not_read_again(work: Path, store: Path) -> None:
    take(store, work, 0)

    def claim(body: dict[str, object]) -> None:
        # As if it had been taken long after the last change; and what is believed unread can be told from what is read.
        body["taken"] = int(str(body["taken"])) + HOUR
        for row in body["entries"]:  # type: ignore[attr-defined]
            row[-1] = "0" * 64 if row[1] == "file" else row[-1]

    change_manifest(store, 0, claim)
    rewrite(work / "src" / "app.py", "x = 2\n")
    take(store, work, 1)
    manifest = load(store, 1)
    assert manifest
    read = {entry.path for entry in manifest.entries if entry.kind == "file" and entry.value != "0" * 64}
    assert read == {"src/app.py"}


def test_what_changed_just_before_is_read_again(work: Path, store: Path) -> None:
    # Two changes in one step of the file system's clock leave the same times.
    take(store, work, 0)

    def claim(body: dict[str, object]) -> None:
        body["taken"] = (work / "run.sh").stat().st_ctime_ns + 1_000_000_000
        for row in body["entries"]:  # type: ignore[attr-defined]
            row[-1] = "0" * 64 if row[1] == "file" else row[-1]

    change_manifest(store, 0, claim)
    take(store, work, 1)
    manifest = load(store, 1)
    assert manifest and all(entry.value != "0" * 64 for entry in manifest.entries)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has none of these")
def test_pipes_and_sockets_are_not_opened(work: Path, store: Path, tmp_path: Path) -> None:
    before = tree(work)
    os.mkfifo(work / "src" / "pipe")
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(work)  # a socket's path must be short
        server.bind("sock")
        os.chdir(here)
        take(store, work, 0)
    assert restored(store, 0, tmp_path / "copy") == before


def test_an_absolute_link_into_the_workspace_leads_into_the_new_one(work: Path, store: Path, tmp_path: Path) -> None:
    (work / "own").symlink_to(work.resolve() / "src")
    (work / "beside").symlink_to(f"{work.resolve()}-other")
    take(store, work, 0)
    restore(store, 0, tmp_path / "copy")
    assert os.readlink(tmp_path / "copy" / "own") == str(tmp_path.resolve() / "copy" / "src")
    assert os.readlink(tmp_path / "copy" / "beside") == f"{work.resolve()}-other"


def test_nothing_outside_is_followed(work: Path, store: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (work / "out").symlink_to(outside)
    take(store, work, 0)
    assert b"secret" not in {path.read_bytes() for path in contents(store)}
    shutil.rmtree(work)
    work.symlink_to(outside)
    take(store, work, 1)
    assert refused(store, 1, tmp_path / "copy").code == "snapshot_failed"


@pytest.mark.parametrize("what", ["size", "number"])
def test_too_much_is_not_kept_and_this_is_known_later(work: Path, store: Path, tmp_path: Path, what: str) -> None:
    take(store, work, 0)
    if what == "size":
        with (work / "big").open("wb") as stream:
            stream.truncate(5 * 1024**3)
    else:
        for number in range(MAX_FILES):
            os.mknod(work / str(number))
    kept = len(contents(store))
    take(store, work, 1)
    assert len(contents(store)) <= kept + 1
    problem = refused(store, 1, tmp_path / "copy")
    assert (problem.code, problem.values) == ("snapshot_too_big", {"files": 20_000, "megabytes": 200})
    shutil.rmtree(work)
    work.mkdir()
    (work / "small").write_text("small")
    take(store, work, 2)
    assert set(restored(store, 2, tmp_path / "copy")) == {"small"}


def test_what_was_never_taken_is_a_problem_too(work: Path, store: Path, tmp_path: Path) -> None:
    assert refused(store, 3, tmp_path / "copy").code == "snapshot_missing"
    take(store, work, 3)
    (store / "3.json").write_text('{"root": "x"')
    assert refused(store, 3, tmp_path / "copy").code == "snapshot_missing"
    take(store, tmp_path / "nowhere", 4)
    assert refused(store, 4, tmp_path / "copy").code == "snapshot_failed"


def test_a_damaged_content_is_noticed(work: Path, store: Path, tmp_path: Path) -> None:
    take(store, work, 0)
    place = next(path for path in contents(store) if path.read_bytes() == b"x = 1\n")
    place.write_bytes(b"x = 3\n")
    with pytest.raises(OSError, match="not what it was"):
        restore(store, 0, tmp_path / "one")
    place.unlink()
    with pytest.raises(FileNotFoundError):
        restore(store, 0, tmp_path / "two")
    take(store, work, 1)
    assert restored(store, 1, tmp_path / "three") == tree(work), "what is there again is kept again"


def test_a_disk_that_cannot_be_written_leaves_no_wrong_snapshot(work: Path, store: Path, tmp_path: Path) -> None:
    store.write_text("a file where the folder should be")
    take(store, work, 0)
    assert refused(store, 0, tmp_path / "copy").code == "snapshot_missing"
    assert store.read_text() == "a file where the folder should be"


def test_stores_that_share_contents_outlive_each_other(work: Path, store: Path, tmp_path: Path) -> None:
    states = []
    for task in range(3):
        (work / "src" / "app.py").write_text(f"x = {task}\n")
        states.append(tree(work))
        take(store, work, task)
    other = tmp_path / "other" / "snapshots"
    share(store, other, 1)
    assert len(contents(other)) == 4 and load(other, 2) is None, "what came later is not shared"
    shutil.rmtree(store)
    assert [restored(other, task, tmp_path / f"copy{task}") for task in (0, 1)] == states[:2]
    assert refused(other, 2, tmp_path / "copy2").code == "snapshot_missing"


@pytest.mark.skipif(sys.platform == "win32", reason="made for POSIX")
def test_an_unreadable_file_is_named() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "work").mkdir()
        (folder / "work" / "closed.txt").write_text("x")
        (folder / "work" / "closed.txt").chmod(0)
        child = os.fork()
        if not child:
            code = 1
            try:
                if os.getuid() == 0:  # root reads everything
                    os.setuid(65534)
                take(folder / "snapshots", folder / "work", 0)
                restore(folder / "snapshots", 0, folder / "copy")
            except Problem as problem:
                code = 0 if "closed.txt" in str(problem.values["reason"]) and not (folder / "copy").exists() else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


NAMES = st.sampled_from(
    [b"a", b"A", b"b.py", b"\xff\xfe", b"\xe6\x97\xa5", b"e\xcc\x81", b"\xc3\xa9", b"x\\y", b"-", b" \n"]
)
DEEDS = st.sampled_from(["write", "same size", "append", "remove", "folder", "link", "mode", "move", "pipe", "nothing"])
Step = tuple[str, list[bytes], list[bytes]]
STEP = st.tuples(DEEDS, st.lists(NAMES, min_size=1, max_size=3), st.lists(NAMES, min_size=1, max_size=2))


def act(root: bytes, deed: str, first: list[bytes], second: list[bytes]) -> None:
    """Do one thing in a workspace, as a command would; what cannot be done is not done."""
    path, other = os.path.join(root, *first), os.path.join(root, *second)
    try:
        match deed:
            case _ if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
                pass  # whoever opens it waits
            case "write":
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as stream:
                    stream.write(b"-".join(second) * 3)
            case "same size":
                before = os.stat(path)
                with open(path, "r+b") as stream:
                    stream.write(b"#" * before.st_size)
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            case "append":
                with open(path, "ab") as stream:
                    stream.write(b"more")
            case "remove":
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
            case "folder":
                os.makedirs(path)
            case "link":
                os.symlink(b"/".join(second), path)
            case "mode":
                os.chmod(path, 0o700 | len(first) * 0o21, follow_symlinks=not os.path.islink(path))
            case "move":
                os.rename(path, other)
            case "pipe":
                os.mkfifo(path)
    except (OSError, NotImplementedError):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse some of the names")
@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(STEP, max_size=6), min_size=1, max_size=4))
def test_every_snapshot_of_any_workspace_is_what_was_there(
    tasks: list[list[tuple[str, list[bytes], list[bytes]]]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        work, store = Path(name, "work"), Path(name, "snapshots")
        work.mkdir()
        states = []
        for task, steps in enumerate(tasks):
            for step in steps:
                act(os.fsencode(work), *step)
            states.append(tree(work))
            take(store, work, task)
        for task, state in enumerate(states):
            assert restored(store, task, Path(name, f"copy{task}")) == state
        share(store, Path(name, "other"), len(tasks))
        shutil.rmtree(store)
        assert restored(Path(name, "other"), len(tasks) - 1, Path(name, "last")) == states[-1]
