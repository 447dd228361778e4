"""`server.py doctor`: the real command as a child, and each check against what it is about."""

import ast
import contextlib
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness import tokens
from harness.doctor.database import database
from harness.doctor.machine import phoenix, ranks, sandbox
from harness.doctor.model import key, model
from harness.doctor.result import Result, examine
from harness.journal import Journal
from harness.model.provider import Provider, choose
from harness.ownership import claim
from harness.problems import Problem
from offline_model.server import OfflineServer
from tests.harness_support import ROOT
from web.catalogue import load_all
from web.doctor import port

SECRET = "sk-0123456789abcdef0123456789"
OWN = ("DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PHOENIX_COLLECTOR_ENDPOINT")
NAMES = ["Python", "Port", "Lab", "Key", "Model", "Sandbox", "Database", "Rank file", "Phoenix"]


def doctor(
    *options: str, start: str = "server.py", python: str = sys.executable, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a bare environment of its own."""
    bare = {name: value for name, value in os.environ.items() if name not in OWN and not name.endswith("_proxy")}
    command = [python, str(ROOT / start), "doctor", *options]
    return subprocess.run(command, capture_output=True, text=True, env=bare | environment, timeout=60)


def line(done: subprocess.CompletedProcess[str], name: str) -> str:
    """Return the check's line."""
    found = [each for each in done.stdout.splitlines() if re.match(rf"\[.\] \S.*? {name}  ", each)]
    assert len(found) == 1, done.stdout + done.stderr
    return found[0]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Something that listens, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.mark.parametrize("start", ["server.py", "labs/01-mini-coding-agent/server.py"])
def test_a_good_machine(start: str, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'new' / 'journal.db'}"
    done = doctor("--port", "0", "--database", address, "--lang", "en", start=start)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert [re.split(r"  +", each)[1] for each in lines[:-1]] == NAMES
    assert {each[:3] for each in lines[:-1]} <= {"[+]", "[?]"}
    assert "offline answered in" in line(done, "Model") and "No key was found" in line(done, "Model")
    assert lines[-1] == "Nothing must be mended."
    assert done.stderr == ""
    assert not list(tmp_path.iterdir()), "it leaves nothing behind"


def test_it_speaks_the_language_of_the_option_the_environment_or_the_file(tmp_path: Path) -> None:
    file = tmp_path / "class.toml"
    file.write_text('language = "zh"\n')
    for options, environment in ((["--lang", "zh"], {}), ([], {"LC_ALL": "zh_CN.UTF-8"}), (["--settings", file], {})):
        done = doctor("--port", "0", *map(str, options), **{"LC_ALL": "C.UTF-8"} | environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("[+] 正常") and done.stdout.endswith("没有必须处理的问题。\n")


def test_whatever_is_wrong_is_a_line_each_and_an_exit_code(tmp_path: Path, listener: socket.socket) -> None:
    (tmp_path / "file").write_text("no folder")
    taken = str(listener.getsockname()[1])
    wrong = ["--port", taken, "--lab", "77", "--database", f"sqlite:///{tmp_path / 'file' / 'journal.db'}"]
    done = doctor(*wrong, "--lang", "en", DEEPSEEK_API_KEY='"quoted"', PHOENIX_COLLECTOR_ENDPOINT="localhost")
    assert done.returncode == 1 and done.stderr == ""
    assert [each[:3] for each in done.stdout.splitlines()[:5]] == ["[+]", "[!]", "[!]", "[!]", "[?]"]
    assert f"Port {taken} on 127.0.0.1 cannot be used" in line(done, "Port")
    assert "There is no lab 77. Choose one of: 01" in line(done, "Lab")
    assert "DEEPSEEK_API_KEY holds a blank, a quote" in line(done, "Key") and "quoted" not in done.stdout
    assert "Not asked." in line(done, "Model")
    assert "[!]" in line(done, "Database") and f"Nothing can be written in {tmp_path / 'file'}" in line(
        done, "Database"
    )
    assert "is no address such as" in line(done, "Phoenix")
    assert done.stdout.endswith("4 things must be mended before a start.\n")


def test_a_model_that_cannot_be_reached_or_says_nothing_is_told_in_time(listener: socket.socket) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{closed.getsockname()[1]}"
        done = doctor("--port", "0", "--lang", "en", DEEPSEEK_API_KEY=SECRET, DEEPSEEK_BASE_URL=away)
    assert done.returncode == 1
    assert "DEEPSEEK_API_KEY is set and goes to" in line(done, "Key")
    assert line(done, "Model").startswith("[!]") and f"deepseek-flash cannot be reached ({away}" in line(done, "Model")
    assert SECRET not in done.stdout + done.stderr
    silent = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    done = doctor("--port", "0", "--lang", "en", "--base-url", silent, "--model", "m")
    assert "m did not answer within 8 seconds" in line(done, "Model") and done.returncode == 1


def test_a_settings_file_and_a_fault_are_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "class.toml"
    file.write_text('theme = "pink"')
    assert f"theme in {file} must be one of: auto" in line(doctor("--settings", str(file), "--lang", "en"), "Lab")
    done = doctor("--fault", "cut", "--lang", "en", DEEPSEEK_API_KEY=SECRET, DEEPSEEK_BASE_URL="http://127.0.0.1:9")
    assert "Only the offline model can act out the fault cut" in line(done, "Lab")


def test_a_python_that_is_too_old_says_so() -> None:
    for name in ("python3.10", "python3.9", "python3.8"):
        path = shutil.which(name) or ""
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            break
    else:
        pytest.skip("no older Python is installed here")
    done = doctor(python=path)
    assert done.returncode == 1 and done.stderr.startswith("Python 3.11 or newer is needed.")
    assert done.stderr.count("\n") == 1


def test_a_check_that_crashes_or_hangs_is_a_result_and_harms_no_other() -> None:
    def broken() -> Result:
        raise ZeroDivisionError(SECRET)

    def denied() -> Result:
        raise PermissionError(13, "Permission denied")

    def problem() -> Result:
        raise Problem("lab_unknown", name="x", known="y")

    hangs = threading.Event()
    checks = {
        "hangs": lambda: Result("x", "good") if hangs.wait(30) else Result("y", "good"),
        "broken": broken, "denied": denied, "problem": problem, "good": lambda: Result("z", "good"),
    }  # fmt: skip
    found = dict(examine(checks, 0.5))
    hangs.set()
    assert list(found) == list(checks)
    assert (found["hangs"].code, found["hangs"].grade) == ("late", "mend")
    assert found["broken"] == Result("crashed", "mend", {"reason": "ZeroDivisionError"})
    assert "Permission denied" in str(found["denied"].values["reason"])
    assert (found["problem"].section, found["problem"].code) == ("problem", "lab_unknown")
    assert found["good"] == Result("z", "good")


def opened_by(server: OfflineServer):  # noqa: ANN201
    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Provider]:
        yield replace(provider(), base_url=server.address)

    return opened


def provider() -> Provider:
    return choose({}, model=None, base_url=None, gguf=None)


@pytest.mark.parametrize(
    ("fault", "code", "grade"),
    [
        ("", "model_good", "good"),
        ("key", "model_key", "mend"),
        ("model_missing", "model_unknown", "mend"),
        ("rate_limit", "model_rate_limit", "look"),
        ("server_error", "model_server", "look"),
        ("cut", "model_refused", "mend"),
        ("stall", "model_late", "mend"),
    ],
)
def test_how_a_model_fails(fault: str, code: str, grade: str) -> None:
    with OfflineServer(delay=0, fault=fault) as server:
        found = model(provider, opened_by(server), 1.0 if fault == "stall" else 20.0)
    assert (found.code, found.grade) == (code, grade)


@pytest.mark.parametrize(
    ("environment", "base_url", "code"),
    [
        ({}, None, "key_none"),
        ({}, "http://127.0.0.1:11434/v1", "key_not_needed"),
        ({"DEEPSEEK_API_KEY": SECRET}, None, "key_set"),
        ({"OPENAI_API_KEY": SECRET}, None, "key_set"),
        ({"OPENAI_API_KEY": SECRET}, "http://127.0.0.1:11434/v1", "key_set"),
    ],
)
def test_the_key_is_named_and_never_shown(environment: dict[str, str], base_url: str | None, code: str) -> None:
    found = key(lambda: choose(environment, model=None, base_url=base_url, gguf=None))
    assert (found.code, found.grade) == (code, "good")
    assert SECRET not in str(found)
    assert found.values.get("name") == next(iter(environment), None)


def test_a_sandbox_runs_a_command_and_leaves_nothing(tmp_path: Path) -> None:
    found = sandbox(tmp_path)
    assert found.code.startswith("sandbox_") and found.grade in ("good", "look")
    assert not list(tmp_path.iterdir())


def test_the_database_is_opened_and_written_and_is_as_before(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'journal.db'}"
    assert database(address, tmp_path).code == "database_new" and not list(tmp_path.iterdir())
    Journal(address).close()
    before = (tmp_path / "journal.db").read_bytes()
    assert database(address, tmp_path) == database(None, tmp_path)
    assert database(address, tmp_path) == Result("database_good", "good", {"place": str(tmp_path / "journal.db")})
    assert (tmp_path / "journal.db").read_bytes() == before
    with contextlib.closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'full'); END")
    assert database(address, tmp_path).code == "database_read_only"


def test_a_database_that_another_server_holds_is_left_alone(tmp_path: Path) -> None:
    journal = Journal(f"sqlite:///{tmp_path / 'journal.db'}")
    with contextlib.closing(claim(tmp_path)) as held:
        with pytest.raises(Problem) as caught:
            database(None, tmp_path)
        assert caught.value.code == "journal_in_use"
        assert held.in_transaction and journal.try_write() is None
    journal.close()
    assert database(None, tmp_path).grade == "good", "it is free again"


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_text("Dear diary, " * 100)
    with pytest.raises(Problem) as caught:
        database(None, tmp_path)
    assert (caught.value.code, caught.value.values["reason"]) == ("journal_open", "file is not a database")


def test_an_address_of_a_database_is_shown_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (address := os.environ.get("LAB_TEST_DATABASE")):
        pytest.skip("LAB_TEST_DATABASE names no PostgreSQL database")
    found = database(address, ROOT / ".lab")
    assert found.code == "database_good" and "@" not in str(found.values["place"])


def test_a_damaged_rank_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ranks().code == "ranks_good"
    bad = tmp_path / "ranks.gz"
    bad.write_bytes(b"nothing")
    monkeypatch.setattr(tokens, "RANKS", bad)
    tokens.encoding.cache_clear()
    try:
        assert (ranks().code, ranks().grade) == ("ranks_damaged", "mend")
    finally:
        tokens.encoding.cache_clear()


def test_phoenix_is_only_asked_whether_it_is_there(listener: socket.socket) -> None:
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    found = phoenix({"PHOENIX_COLLECTOR_ENDPOINT": f"http://user:{SECRET}@{address}/v1/traces"})
    assert found == Result("phoenix_there", "good", {"address": address})
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(5)
        assert connection.recv(10) == b"", "nothing is sent"
    listener.close()
    assert phoenix({"PHOENIX_COLLECTOR_ENDPOINT": f"http://{address}"}).code == "phoenix_silent"
    assert phoenix({"PHOENIX_COLLECTOR_ENDPOINT": "127.0.0.1:6006"}).code == "phoenix_address"
    assert phoenix({"PHOENIX_COLLECTOR_ENDPOINT": "http://h:99999"}).code == "phoenix_address"
    assert phoenix({}).grade == "good", "there or not, it is no fault"


def test_the_port(listener: socket.socket) -> None:
    assert port("127.0.0.1", 0).code == "port_any"
    assert port("0.0.0.0", 0) == Result("port_open", "look", {"host": "0.0.0.0"})
    with pytest.raises(Problem) as caught:
        port("127.0.0.1", listener.getsockname()[1])
    assert caught.value.code == "port_taken"


def test_every_outcome_has_its_line_and_every_line_its_outcome() -> None:
    codes: set[str] = set()
    for path in (*(ROOT / "harness/doctor").glob("*.py"), ROOT / "web/doctor.py"):
        texts = (node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant))
        codes |= {text for text in texts if isinstance(text, str)}
    for words in load_all().values():
        lines = {name.removeprefix("doctor.") for name in words.entries if name.startswith("doctor.")}
        assert lines - codes - {"ready", "to_mend"} == set()
        assert {"late", "crashed", "key_set"} <= lines
        results = {
            code for code in codes if re.match(r"(port|lab|key|model|sandbox|database|ranks|phoenix)_[a-z_]+$", code)
        }
        assert results - {"model_missing", "model_reason"} <= lines
