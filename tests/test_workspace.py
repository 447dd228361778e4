"""Paths stay inside the workspace, and a folder is copied without what must not leave it."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.coding_tools.workspace_copy import MAX_FILES, WorkspaceError, copy_workspace
from harness.sandbox.detect import Sandbox
from harness.tools import ToolError
from harness.workspace import Workspace, is_protected


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("x = 1\n")
    (root / ".env").write_text("KEY=secret\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "note.txt").write_text("outside\n")
    return Workspace(root, "work")


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("src/app.py", "src/app.py"),
        ("./src/../src/app.py", "src/app.py"),
        (".", "."),
        ("new/deep/file.txt", "new/deep/file.txt"),
        (".gitignore", ".gitignore"),
        (".github/x.yml", ".github/x.yml"),
        ("environment.py", "environment.py"),
        ("keyboard.py", "keyboard.py"),
        ("日志.txt", "日志.txt"),
        ("~/x", "~/x"),
    ],
)
def test_a_path_inside_is_found(workspace: Workspace, path: str, inside: str) -> None:
    assert workspace.resolve(path) == (workspace.root / inside).resolve()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../outside/note.txt", "outside the workspace"),
        ("src/../../outside/note.txt", "outside the workspace"),
        ("/etc/passwd", "outside the workspace"),
        ("", "empty"),
        ("  ", "empty"),
        ("a\0b", "NUL"),
        (".git/config", "protected"),
        ("sub/.GIT/config", "protected"),
        (".git./config", "protected"),
        (".env", "protected"),
        (".env.local", "protected"),
        (".envrc", "protected"),
        ("deploy/id_rsa", "protected"),
        ("deploy/server.pem", "protected"),
        ("deploy/SERVER.KEY", "protected"),
        (".ssh/config", "protected"),
        ("src/.git/../app.py", "protected"),
    ],
)
def test_a_path_that_may_not_be_touched_says_why(workspace: Workspace, path: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        workspace.resolve(path)


def test_links_are_followed_before_the_check(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.root / "good").symlink_to("src/app.py")
    (workspace.root / "away").symlink_to(tmp_path / "outside")
    (workspace.root / "file").symlink_to("../outside/note.txt")
    (workspace.root / "settings.txt").symlink_to(".env")
    (workspace.root / "loop").symlink_to("loop")
    assert workspace.resolve("good") == workspace.root / "src" / "app.py"
    for path in ("away/note.txt", "away/new.txt", "file"):
        with pytest.raises(ToolError, match="outside"):
            workspace.resolve(path)
    with pytest.raises(ToolError, match="protected"):
        workspace.resolve("settings.txt")
    with pytest.raises(ToolError):
        workspace.resolve("loop/x")


PART = st.one_of(st.sampled_from(["..", ".", "", "src", "away", "up", ".git", ".env", "app.py"]), st.text(max_size=5))


@given(parts=st.lists(PART, max_size=8), absolute=st.booleans())
def test_no_path_leads_outside(parts: list[str], absolute: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "work"
        (root / "src").mkdir(parents=True)
        (root / "away").symlink_to("/etc")
        (root / "src" / "up").symlink_to("../..")
        path = ("/" if absolute else "") + "/".join(parts)
        try:
            found = Workspace(root, "w").resolve(path)
        except ToolError:
            return
        assert found == root or root in found.parents
        assert not any(is_protected(part) for part in found.relative_to(root).parts)


def test_a_path_may_be_absolute_or_as_commands_see_it(workspace: Workspace) -> None:
    wanted = workspace.root / "src" / "app.py"
    assert workspace.resolve(str(wanted)) == wanted
    confined = Workspace(workspace.root, "w", Sandbox("bubblewrap", "bubblewrap", ""))
    assert confined.resolve("/mnt/workspace/src/app.py") == wanted
    assert confined.resolve("/mnt/workspace") == workspace.root
    with pytest.raises(ToolError, match="outside"):
        confined.resolve("/mnt/workspace/../x")
    with pytest.raises(ToolError, match="outside"):
        confined.resolve("/mnt/workspace-other/x")


def test_a_copy_leaves_out_what_is_secret_or_bulky(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in (".git/config", ".venv/x", "lib/node_modules/x", "__pycache__/x", "env/pyvenv.cfg", "lib/a.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("x")
    for name in (".env", ".env.local", "id_rsa", "server.pem", ".gitignore"):
        (source / name).write_text("x")
    os.mkfifo(source / "pipe")
    (source / "run.sh").write_text("x")
    (source / "run.sh").chmod(0o4755)
    (source / "good").symlink_to("lib/a.py")
    (source / "hosts").symlink_to("/etc/hosts")
    (source / "up").symlink_to("..")
    (source / "settings").symlink_to(".env")
    copy = copy_workspace(source, tmp_path / "data" / "copy", "source")
    names = {path.relative_to(copy.root).as_posix() for path in copy.root.rglob("*")}
    assert names == {".gitignore", "good", "lib", "lib/a.py", "run.sh"}
    assert (copy.root / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert os.readlink(copy.root / "good") == "lib/a.py"
    assert copy.label == "source"


def test_a_copy_into_its_own_source_ends(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "data" / "old").mkdir(parents=True)
    (tmp_path / "data" / "old" / "secret").write_text("another session's")
    copy = copy_workspace(tmp_path, tmp_path / "data" / "new", "x")
    assert [path.name for path in copy.root.rglob("*")] == ["a.txt"]


def test_too_big_a_folder_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "copy"
    source.mkdir()
    (source / "a.txt").write_text("a")
    with (source / "big").open("wb") as stream:
        stream.truncate(5 * 1024**3)
    with pytest.raises(WorkspaceError) as raised:
        copy_workspace(source, target, "x")
    assert (raised.value.code, raised.value.values["megabytes"]) == ("folder_too_big", 200)
    assert not target.exists()
    assert (source / "a.txt").read_text() == "a"


def test_too_many_files_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "copy"
    source.mkdir()
    for number in range(MAX_FILES + 1):
        os.mknod(source / str(number))
    with pytest.raises(WorkspaceError, match="folder_too_big.*20000"):
        copy_workspace(source, target, "x")
    assert not target.exists()


def test_a_folder_that_is_not_there_or_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("missing", "file"):
        with pytest.raises(WorkspaceError, match="no_folder"):
            copy_workspace(tmp_path / name, tmp_path / "copy", "x")
    (tmp_path / "source").mkdir()
    (tmp_path / "there").mkdir()
    with pytest.raises(WorkspaceError, match="folder_in_the_way"):
        copy_workspace(tmp_path / "source", tmp_path / "there", "x")
    assert (tmp_path / "there").exists()


def test_an_unreadable_file_is_named() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "source").mkdir()
        (folder / "source" / "closed.txt").write_text("x")
        (folder / "source" / "closed.txt").chmod(0)
        child = os.fork()
        if not child:
            code = 1
            try:
                if os.getuid() == 0:  # root reads everything
                    os.setuid(65534)
                copy_workspace(folder / "source", folder / "copy", "x")
            except WorkspaceError as error:
                code = 0 if "closed.txt" in str(error) and not (folder / "copy").exists() else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
