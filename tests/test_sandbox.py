"""What a command can reach: run for real in each sandbox that this machine offers."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.coding_tools.shell import bash
from harness.sandbox import bubblewrap, landlock, seatbelt, system_paths
from harness.sandbox.detect import KINDS, NOT_DETECTED, Kind, Sandbox, detect
from harness.tools import ToolError
from harness.workspace import Workspace
from tests.harness_support import detected

CONFINED: tuple[Kind, ...] = ("bubblewrap", "landlock", "sandbox-exec")
HERE: tuple[Kind, ...] = ("sandbox-exec",) if sys.platform == "darwin" else ("bubblewrap", "landlock")


@pytest.fixture(scope="module", params=HERE)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    found = detect(kinds=[request.param])
    if found.kind != request.param:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"no {request.param} here: {found.detail}")
    return found


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A folder of data with two sessions' workspaces, reachable for others than its owner."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name).resolve()
        for part in ("mine", "other"):
            (data / part).mkdir()
        (data / "other" / "secret.txt").write_text("the other session's\n")
        (data / "journal.db").write_text("all sessions\n")
        yield data


def run(sandbox: Sandbox, data: Path, command: str, seconds: int = 20) -> str:
    return asyncio.run(bash(Workspace(data / "mine", "mine", sandbox), sandbox, command, seconds))


def test_it_works_in_its_workspace(sandbox: Sandbox, data: Path) -> None:
    shown = run(sandbox, data, "mkdir -p a && echo hello > a/b && cat a/b && rm a/b && touch $HOME/x $TMPDIR/y && ls a")
    assert shown == "hello\n[Exit code 0]"
    assert (data / "mine" / "a").is_dir()


def test_python_and_its_tests_run(sandbox: Sandbox, data: Path) -> None:
    (data / "mine" / "test_x.py").write_text("import unittest\nclass T(unittest.TestCase):\n def test(self): pass\n")
    assert "OK" in run(sandbox, data, "python3 -m unittest -v test_x 2>&1")
    version = run(sandbox, data, "python3 -c 'import sys, json, ssl, sqlite3; print(sys.version_info[:2])'")
    assert version == f"{sys.version_info[:2]}\n[Exit code 0]"
    assert not list((data / "mine").rglob("__pycache__"))


def test_nothing_beside_the_workspace_can_be_read(sandbox: Sandbox, data: Path) -> None:
    own = Path(__file__).resolve().parent.parent
    for path in (data / "other" / "secret.txt", data / "journal.db", own / "pyproject.toml", "/etc/shadow"):
        shown = run(sandbox, data, f"cat '{path}'")
        assert "[Exit code 1]" in shown, path
        assert len(shown.splitlines()) == 2, shown
    shown = run(sandbox, data, "cat ../other/secret.txt; ls ..; ls ../other; ls /proc/1/root/")
    assert "the other" not in shown and "journal.db" not in shown and "home" not in shown
    (data / "mine" / "link").symlink_to(data / "other" / "secret.txt")
    assert "the other" not in run(sandbox, data, "cat link")


def test_home_folders_are_hidden(sandbox: Sandbox, data: Path) -> None:
    with tempfile.NamedTemporaryFile("w", dir=Path.home(), prefix=".secret-") as secret:
        secret.write("the key")
        secret.flush()
        assert Path(secret.name).read_text() == "the key"
        shown = run(sandbox, data, f"cat '{secret.name}'; ls -A '{Path.home()}'; ls -A /home /run /var/lib /root")
    assert "the key" not in shown
    assert ".secret-" not in shown.replace(secret.name, "")


def test_the_system_cannot_be_written(sandbox: Sandbox, data: Path) -> None:
    for path in ("/etc/lab-test", "/usr/lab-test", "/lab-test", "/usr/bin/lab-test", str(data / "other" / "new")):
        assert "Exit code 0]" not in run(sandbox, data, f"touch '{path}'"), path
        assert not Path(path).exists()
    run(
        sandbox,
        data,
        f"rm -rf '{data}/other' /etc/hostname; mv '{data}/journal.db' x; truncate -s 0 '{data}/journal.db'",
    )
    assert (data / "other" / "secret.txt").exists()
    assert (data / "journal.db").read_text() == "all sessions\n"


def test_no_network(sandbox: Sandbox, data: Path) -> None:
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)

        def accept() -> None:
            try:
                connection, _ = server.accept()
                got.append(connection.recv(100))
                connection.close()
            except OSError:
                pass

        thread = threading.Thread(target=accept)
        thread.start()
        port = server.getsockname()[1]
        command = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected >&3"
        assert "[Exit code 1]" in run(sandbox, data, command)
        # The very same command does get through where nothing confines it.
        subprocess.run(["bash", "-c", command], check=True, timeout=20)
        thread.join()
    assert got == [b"connected\n"]


def test_a_clean_environment_without_keys(sandbox: Sandbox, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-very-secret")
    shown = run(sandbox, data, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
    assert "sk-very-secret" not in shown
    names = {line.partition("=")[0] for line in shown.splitlines()[:-1]}
    assert names <= {
        "PATH", "HOME", "TMPDIR", "LANG", "TERM", "PYTHONDONTWRITEBYTECODE", "PWD", "OLDPWD", "SHLVL", "_",
    }  # fmt: skip


def test_a_key_in_the_harness_is_out_of_reach(sandbox: Sandbox, data: Path) -> None:
    if sys.platform == "darwin":
        pytest.skip("macOS has no /proc")
    holder = subprocess.Popen(["sleep", "60"], env={"API_KEY": "sk-very-secret"})
    try:
        # The kernel shows it a moment after the program has begun.
        deadline = time.monotonic() + 10
        while b"sk-very-secret" not in Path(f"/proc/{holder.pid}/environ").read_bytes():
            assert time.monotonic() < deadline
        shown = run(sandbox, data, f"cat /proc/{holder.pid}/environ; kill -9 {holder.pid}; kill -9 $PPID; echo done")
        assert "sk-very-secret" not in shown
        assert "done\n[Exit code 0]" in shown
        assert holder.poll() is None
    finally:
        holder.kill()
        holder.wait()


def test_root_has_no_special_rights(sandbox: Sandbox, data: Path) -> None:
    if sys.platform == "darwin":
        pytest.skip("macOS has no capabilities")
    assert run(sandbox, data, "grep CapEff /proc/self/status").split()[1] == "0000000000000000"
    assert "Exit code 0]" not in run(sandbox, data, "mount -t tmpfs none /mnt || mount -o remount,rw /")


def test_limits_are_in_force(sandbox: Sandbox, data: Path) -> None:
    shown = run(
        sandbox, data, "ulimit -n; ulimit -t; ulimit -c; head -c 300M /dev/zero > big; echo code $?; stat -c %s big"
    )
    assert "code 153" in shown and str(256 * 1024**2) in shown
    assert shown.startswith("1024\n25\n0\n")
    assert "MemoryError" in run(sandbox, data, "python3 -c 'bytearray(5 * 1024**3)'")


def test_processes_are_its_own(data: Path) -> None:
    found = detect(kinds=["bubblewrap"])
    if found.kind != "bubblewrap":
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"no bubblewrap here: {found.detail}")
    shown = run(found, data, "pwd; ls -d /proc/[0-9]* | wc -l; id -u; hostname")
    folder, count, _, host, _ = shown.splitlines()
    assert (folder, host) == ("/mnt/workspace", "workspace")
    assert int(count) < 6


def test_detection_tells_what_was_found_and_why_not() -> None:
    best = detect()
    assert best.kind == "none" or best.kind in CONFINED
    missing = detect(kinds=["sandbox-exec"] if sys.platform != "darwin" else ["landlock"])
    assert (missing.kind, missing.code) == ("none", "none")
    assert "macOS" in missing.detail or "kernel" in missing.detail
    assert detect(kinds=["none"]).bash
    assert set(KINDS) == {*CONFINED, "none"}


def test_the_other_tests_get_what_would_be_found_for_their_folder(data: Path) -> None:
    assert detected(data) == detect([data])
    assert data not in detected(data / "other").hidden


def test_a_sandbox_that_does_not_confine_is_not_taken(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `bwrap` that merely runs the command passes no probe; one that fails neither."""
    for body in ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "echo no user namespaces; exit 1"):
        (data / "bwrap").write_text(f"#!/bin/bash\n{body}\n")
        (data / "bwrap").chmod(0o755)
        monkeypatch.setattr(system_paths, "SYSTEM_PATH", str(data))
        found = detect(kinds=["bubblewrap"])
        assert found.kind == "none"
        assert found.detail.startswith("bubblewrap: ")


def test_commands_are_refused_until_a_sandbox_was_looked_for(data: Path) -> None:
    for sandbox in (NOT_DETECTED, Sandbox("none", "no_bash", "no bash was found")):
        with pytest.raises(ToolError, match=r"Commands cannot run here.*WSL.*Git Bash"):
            run(sandbox, data, "echo x")


def test_what_is_hidden_is_cut_out_of_what_is_readable(tmp_path: Path) -> None:
    shown = system_paths.readable([Path("/usr/share/doc")])
    assert Path("/usr") not in shown and Path("/usr/share") not in shown
    assert Path("/usr/bin") in shown
    assert not any(path == Path("/usr/share/doc") or Path("/usr/share/doc") in path.parents for path in shown)
    everything = system_paths.readable([])
    assert Path("/usr") in everything
    assert not any(Path.home() in path.parents and path.name.startswith(".") for path in everything)


def test_an_interpreter_inside_a_hidden_folder_still_runs() -> None:
    prefix = Path(sys.prefix)
    shown = system_paths.readable([prefix.parent])
    assert any(path.is_relative_to(prefix) or prefix.is_relative_to(path) for path in shown)
    assert prefix.parent not in shown


def test_landlock_refuses_what_it_cannot_read() -> None:
    if not landlock.abi():
        pytest.skip("no Landlock here")
    code = "import json, sys; from harness.sandbox import landlock as found; "
    code += "found.restrict(found.Rules(**json.loads(sys.argv[1])))"
    rules = {"abi": 99, "read": [], "write": ["/nowhere"]}
    subprocess.run(
        [sys.executable, "-c", code, json.dumps(rules)], check=True, timeout=30, cwd=Path(__file__).parent.parent
    )


def test_the_command_lines_name_what_they_should(tmp_path: Path) -> None:
    line = bubblewrap.arguments("/usr/bin/bwrap", "0.6.1", [Path("/usr")], tmp_path)
    assert "--size" not in line and "--cap-drop" in line
    assert line[-6:] == ["/mnt/workspace", "--remount-ro", "/", "--chdir", "/mnt/workspace"] or str(tmp_path) in line
    text = seatbelt.profile([Path("/usr")], [Path("/data")], Path('/w/a"b'), Path("/t"))
    assert '(subpath "/w/a\\"b")' in text
    assert text.index("(deny file-read*") < text.index("(allow file-read* ")
    assert "(deny network*)" in text
