"""A settings file and the options: what counts, what is refused before a start, and what is written comes back."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.discovery import find_labs
from harness.model.provider import choose
from harness.problems import Problem
from offline_model.faults import FAULTS
from tests.harness_support import ROOT
from web.catalogue import load, load_all
from web.command import problem_line, read_arguments
from web.options import Chosen, check_fault, decide
from web.settings import TextSize, Theme
from web.settings_file import FileSettings, parse_settings, render_settings
from web.words import LANGUAGES, Language

LABS = find_labs(ROOT / "labs")
KNOWN = {"budget", "summary_limit", "keep_demands", "step_limit", "approval_seconds", "confirm_summary", "window"}
WHOLE = """
lab = "07"
extensions = ["mini-coding-agent"]
budget = 4000
summary_limit = 700
step_limit = 12
approval_seconds = 60
confirm_summary = 1
window = 2000
fault = "summary_empty"
language = "zh"
theme = "dark"
text_size = "large"
"""


def chosen(monkeypatch: pytest.MonkeyPatch, *options: str) -> Chosen:
    """Return what the real command line comes to."""
    monkeypatch.setattr(sys, "argv", ["server.py", *options])
    return decide(read_arguments(load("en")), LABS, faults=FAULTS, demos=ROOT / "demo_workspace")


def refused(monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    """Return the line that says what is wrong."""
    with pytest.raises(Problem) as caught:
        chosen(monkeypatch, *options)
    return problem_line(load("en"), caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "class.toml"
    path.write_text(WHOLE, "utf-8")
    return path


def test_nothing_asked_for_is_lab_07_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = chosen(monkeypatch)
    assert (found.lab.number, found.extensions, found.settings, found.fault) == ("07", (), {}, "")
    assert (found.language, found.theme, found.text_size) == (None, "auto", "normal")
    assert found.source == ROOT / "demo_workspace" / "incident-log"


def test_a_file_says_it_all(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    found = chosen(monkeypatch, "--settings", str(file))
    assert (found.lab.number, found.extensions, found.fault) == ("07", ("01",), "summary_empty")
    assert found.settings == {
        "budget": 4000, "summary_limit": 700, "step_limit": 12,
        "approval_seconds": 60, "confirm_summary": 1, "window": 2000,
    }  # fmt: skip
    assert (found.language, found.theme, found.text_size) == ("zh", "dark", "large")


def test_the_command_line_counts_before_the_file(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    options = ["--ext", "07", "--budget", "5000", "--set", "step_limit=3", "--window", "0", "--fault", "cut"]
    options += ["--lang", "en", "--theme", "light", "--text-size", "normal", "--settings", str(file)]
    found = chosen(monkeypatch, *options)
    assert (found.extensions, found.fault) == (("07",), "cut")
    assert found.settings == {
        "budget": 5000, "summary_limit": 700, "step_limit": 3,
        "approval_seconds": 60, "confirm_summary": 1, "window": 0,
    }  # fmt: skip
    assert (found.language, found.theme, found.text_size) == ("en", "light", "normal")
    file.write_text('lab = "1"')
    assert chosen(monkeypatch, "--settings", str(file)).lab.number == "01"
    assert chosen(monkeypatch, "--settings", str(file), "--lab", "7").lab.number == "07"


def test_a_preset_is_where_a_session_begins_and_what_is_more_particular_counts_before_it(
    monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    presets = {each.id: each.settings for each in LABS["08"].presets}
    assert chosen(monkeypatch, "--lab", "08", "--preset", "article").settings == presets["article"]
    file.write_text('lab = "08"\npreset = "small"\nwindow = 5000\n', "utf-8")
    assert chosen(monkeypatch, "--settings", str(file)).settings == presets["small"] | {"window": 5000}
    both = chosen(monkeypatch, "--settings", str(file), "--preset", "article", "--set", "keep=700")
    assert both.settings == presets["article"] | {"keep": 700}
    assert chosen(monkeypatch, "--settings", str(file), "--preset", "").settings["window"] == 5000
    file.write_text('preset = ""', "utf-8")
    assert chosen(monkeypatch, "--settings", str(file)).settings == {}


def test_the_options_for_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    found = chosen(monkeypatch, "--confirm", "--window", "900", "--set", "budget= 1", "--budget", "2", "--set=budget=3")
    assert found.settings == {"confirm_summary": 1, "window": 900, "budget": 3}, "the last one counts"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "colour=3"], "--set: lab 07 has no setting colour. Nothing was started. It has: approval_seconds, "),
        (["--set", "step_limit"], "--set: step_limit must be a whole number from 1 to 10,000,000."),
        (["--set", "step_limit=0"], "step_limit must be a whole number from 1 to"),
        (["--set", "budget=1.5"], "budget must be a whole number from 0 to"),
        (["--set", "confirm_summary=2"], "confirm_summary must be a whole number from 0 to 1."),
        (["--set", "keep_demands=2"], "keep_demands must be a whole number from 0 to 1."),
        (["--lab", "08", "--set", "count_simply=2"], "count_simply must be a whole number from 0 to 1."),
        (
            ["--lab", "08", "--preset", "huge"],
            "--preset: lab 08 has no preset huge. Nothing was started. It has: small, ",
        ),
        (["--preset", "small"], "--preset: lab 07 has no presets. Nothing was started."),
        (["--set", "=3"], "lab 07 has no setting ."),
        (["--set", "budget=" + "9" * 9000], "budget must be a whole number from 0 to"),
        (["--budget", "-1"], "--budget: budget must be a whole number from 0 to 10,000,000."),
        (["--budget", "many"], "--budget: budget must be a whole number"),
        (["--window", "10000001"], "--window: window must be a whole number from 0 to 10,000,000."),
        (["--lab", "01", "--budget", "5"], "--budget: lab 01 has no setting budget."),
        (["--fault", "sleepy"], "--fault: there is no fault sleepy. Nothing was started. Choose one of: key, "),
        (["--workspace", "/no/such/folder"], "is not a folder"),
        (["--lab", "77"], "There is no lab 77."),
        (["--settings", "/no/such/file.toml"], "The settings file /no/such/file.toml cannot be read: No such file"),
    ],
)
def test_an_option_that_does_not_fit(monkeypatch: pytest.MonkeyPatch, options: list[str], words: str) -> None:
    assert words in refused(monkeypatch, *options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("budget = ", "cannot be read: Invalid value (at"),
        ("budget = 1\nbudget = 2\n", "cannot be read: Cannot overwrite a value (at line 2"),
        ("colour = 'red'", "names colour, which is no setting. Nothing was started. Use some of: lab, extensions, "),
        ("colour = 3", "names colour, which is no setting."),
        ("[budget]\nvalue = 3", "budget in {file} must be a whole number"),
        ("budget = '1500'", "budget in {file} must be a whole number"),
        ("confirm_summary = true", "confirm_summary in {file} must be a whole number"),
        ("step_limit = 3.0", "step_limit in {file} must be a whole number"),
        ("confirm_summary = 2", "{file}: confirm_summary must be a whole number from 0 to 1."),
        ("budget = 0x" + "f" * 9000, "{file}: budget must be a whole number from 0 to 10,000,000."),
        ("budget = " + "9" * 9000, "cannot be read: "),
        ("lab = 7", "lab in {file} must be text in quotes"),
        ("preset = 1", "preset in {file} must be text in quotes"),
        ("preset = 'small'", "{file}: lab 07 has no presets."),
        ("fault = ['cut']", "fault in {file} must be text in quotes"),
        ("fault = 'sleepy'", "{file}: there is no fault sleepy."),
        ("extensions = '01'", 'extensions in {file} must be a list of labs in quotes, such as ["01"].'),
        ("extensions = [1]", "extensions in {file} must be a list of labs"),
        ("extensions = ['44']", "There is no lab 44."),
        ("language = 'fr'", "language in {file} must be one of: en, zh."),
        ("theme = 1", "theme in {file} must be one of: auto, light, dark."),
        ("text_size = []", "text_size in {file} must be one of: normal, large, largest."),
        ("lab = '01'\nbudget = 5", "{file}: lab 01 has no setting budget."),
        ('"\\u001b[31mred" = 1', "names \ufffd[31mred, which is no setting"),
        ("x = " + "[" * 3000, "cannot be read: "),
    ],
)
def test_a_file_that_does_not_fit(monkeypatch: pytest.MonkeyPatch, file: Path, text: str, words: str) -> None:
    file.write_text(text, "utf-8")
    line = refused(monkeypatch, "--settings", str(file))
    assert words.replace("{file}", str(file)) in line and str(file) in line or "no lab 44" in line
    assert "\n" not in line and line.isprintable()


def test_a_file_of_another_coding(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    file.write_bytes(b'lab = "\xb5"')
    assert "cannot be read: 'utf-8' codec" in refused(monkeypatch, "--settings", str(file))
    file.write_bytes(b"\xef\xbb\xbfbudget = 7")
    assert chosen(monkeypatch, "--settings", str(file)).settings == {"budget": 7}, "an editor's mark is no content"


def test_only_the_offline_model_acts_out_a_fault() -> None:
    offline = choose({}, model=None, base_url=None, gguf=None)
    other = choose({}, model="m", base_url="http://127.0.0.1:9/v1", gguf=None)
    check_fault("cut", offline)
    check_fault("", other)
    with pytest.raises(Problem) as caught:
        check_fault("cut", other)
    for words in load_all().values():
        assert "cut" in problem_line(words, caught.value) and "m" in problem_line(words, caught.value)


@pytest.mark.parametrize(
    "options",
    [["--settings", "FILE"], ["--set", "colour=3"], ["--fault", "sleepy"], ["--budget", "x"], ["--theme", "pink"]],
)
def test_the_command_says_one_thing_and_starts_nothing(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "FILE").write_text("theme = 3")
    database = f"sqlite:///{tmp_path / 'sub' / 'journal.db'}"
    command = [sys.executable, str(ROOT / "server.py"), *options, "--port", "0", "--database", database, "--lang", "en"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    if "--theme" not in options:
        assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["FILE"], "no folder was made"


def test_the_file_is_in_force(tmp_path: Path, file: Path) -> None:
    """The words at the start are in the file's language, and the model does not fit the fault: nothing starts."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("DEEPSEEK_", "OPENAI_"))}
    command = [sys.executable, str(ROOT / "server.py"), "--settings", str(file), "--port", "0"]
    command += ["--database", f"sqlite:///{tmp_path / 'journal.db'}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=bare, encoding="utf-8") as running:
        try:
            assert running.stdout and "实战 07" in running.stdout.readline()
        finally:
            running.terminate()
    done = subprocess.run(
        [*command, "--base-url", "http://127.0.0.1:9/v1", "--model", "m"], capture_output=True, text=True, env=bare,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and "summary_empty" in done.stderr and done.stderr.count("\n") == 1


def words_of(*choices: str) -> st.SearchStrategy[Any]:
    return st.none() | st.sampled_from(choices)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.builds(
    FileSettings,
    lab=st.none() | TEXT,
    extensions=st.none() | st.lists(TEXT, max_size=4).map(tuple),
    preset=st.none() | TEXT,
    fault=st.none() | TEXT,
    language=words_of(*LANGUAGES),
    theme=words_of(*get_args(Theme)),
    text_size=words_of(*get_args(TextSize)),
    settings=st.dictionaries(st.sampled_from(sorted(KNOWN)) | TEXT.map("x".__add__), st.integers(0, 10_000_000)),
)


@given(values=VALUES, language=st.sampled_from(LANGUAGES))
def test_what_is_written_reads_back_the_same(values: FileSettings, language: Language) -> None:
    text = render_settings(values, load(language))
    assert parse_settings(text, "file", values.settings.keys()) == values
    assert text.startswith("# ") and text.splitlines()[0] == f"# {load(language).t('settings_file.comment')}"


def test_what_is_written_is_plain_to_read() -> None:
    values = FileSettings(
        lab="07", extensions=("01",), preset="small", theme="dark", settings={"budget": 1500, "window": 0}
    )
    assert render_settings(values, load("en")).splitlines()[1:] == [
        'lab = "07"', 'extensions = ["01"]', 'preset = "small"', 'theme = "dark"', "budget = 1500", "window = 0",
    ]  # fmt: skip
    assert render_settings(FileSettings(), load("zh")).count("\n") == 1
