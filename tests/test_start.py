"""What the command prints at the start and for `--list`: the real server as a child."""

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from harness.discovery import find_labs
from tests.harness_support import ROOT
from web.catalogue import load
from web.words import LANGUAGES

LABS = find_labs(ROOT / "labs")
BARE = {name: value for name, value in os.environ.items() if not name.startswith(("DEEPSEEK_", "OPENAI_"))}
# What is printed before the server answers: lab, address, model, sandbox, workspace, how to stop.
LINES = 6
FIRST = {
    "en": "Context Lab · lab 10, Watch, compress, checkpoint + lab 09, Budgets for tool results"
    " + lab 01, A mini coding agent",
    "zh": "Context Lab · 实战 10：监控、压缩、检查点 + 实战 09：工具结果的预算 + 实战 01：迷你编程助手",
}


def command(language: str, *options: str) -> list[str]:
    return [sys.executable, str(ROOT / "server.py"), "--lang", language, *options]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_start_says_which_labs_run_where_and_with_which_model(tmp_path: Path, language: str) -> None:
    options = ["--lab", "10", "--ext", "09", "--ext", "mini-coding-agent", "--port", "0"]
    options += ["--database", f"sqlite:///{tmp_path / 'journal.db'}", "--offline-assets"]
    words = load(language)
    with subprocess.Popen(
        command(language, *options), stdout=subprocess.PIPE, text=True, env=BARE, encoding="utf-8"
    ) as running:
        try:
            assert running.stdout
            said = [running.stdout.readline().rstrip("\n") for _ in range(LINES)]
            [address] = re.findall(r"http://127\.0\.0\.1:\d+/$", said[1])
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=20) as page:
                assert page.status == 200, "it is said only once the page is there"
        finally:
            running.terminate()
        assert running.stdout.read() == "", "nothing more is printed"
    assert said[0] == FIRST[language]
    assert "offline" in said[2] and said[2].endswith(str(words.t("model_reason.no_key").unescape()))
    assert said[3].split(maxsplit=1)[1] in {
        words.entries[name] for name in words.entries if name.startswith("sandbox.")
    }
    assert str(ROOT / "demo_workspace" / LABS["10"].demo) in said[4]
    assert "Ctrl+C" in said[5]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_list_has_a_line_for_each_lab_with_its_names_in_columns(tmp_path: Path, language: str) -> None:
    done = subprocess.run(
        command(language, "--list"),
        capture_output=True,
        text=True,
        env=BARE,
        encoding="utf-8",
        cwd=tmp_path,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = [re.fullmatch(r"(\d\d)  (\S+) +(\S.*)", line) for line in done.stdout.splitlines()]
    assert all(found)
    assert [match.groups() for match in found if match] == [
        (lab.number, lab.name, lab.title[language]) for lab in LABS.values()
    ]
    assert len({match.start(3) for match in found if match}) == 1, "every title begins in the same column"
    assert list(tmp_path.iterdir()) == []
