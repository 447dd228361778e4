"""What the README says is true: its extension runs as written, its options and files are there."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import events as e
from harness.combining import DEFAULTS
from harness.discovery import find_labs
from offline_model.faults import FAULTS
from tests.harness_support import ROOT, events, library, run_sample
from web.catalogue import load
from web.command import read_arguments
from web.options import decide
from web.settings_file import NAMES

READMES = [ROOT / "README.md", ROOT / "README.zh.md"]
EXTENSION = re.search(r"```python\n(.*?)```", READMES[0].read_text("utf-8"), re.DOTALL).group(1)  # type: ignore[union-attr]


def test_the_extension_works_as_written_and_does_not_move_the_cut(tmp_path: Path) -> None:
    labs = tmp_path / "labs"
    brief = labs / "20-brief"
    brief.mkdir(parents=True)
    for name in ("01-mini-coding-agent", "07-context-management"):
        (labs / name).symlink_to(ROOT / "labs" / name)
    (brief / "lab.toml").write_text((ROOT / "labs/01-mini-coding-agent/lab.toml").read_text("utf-8"))
    (brief / "extension.py").write_text(EXTENSION)

    async def scenario() -> None:
        async with library(tmp_path, labs=labs, extensions=("20",)) as opened:
            session = await opened.create(language="en")
            assert "Answer in at most 400 characters." in session.state.request().messages[0]["content"]
            await run_sample(session, 1)
            await run_sample(session, 2)
            assert [each.task for each in events(session, e.FollowUpAdded)] == [1, 2]
            compacted = events(session, e.ContextCompacted)
            assert [each.cut for each in compacted] == [session.state.tasks[1].seq]

    asyncio.run(scenario())


def test_the_extension_has_fifteen_lines_and_is_the_same_in_both_languages() -> None:
    assert len(EXTENSION.strip().splitlines()) - EXTENSION.strip().splitlines().count("") <= 15
    assert EXTENSION in READMES[1].read_text("utf-8")


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.name)
def test_files_links_and_options_exist(readme: Path) -> None:
    text = readme.read_text("utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).is_file(), target
    tree = re.search(r"```\nserver.py(.*?)```", text, re.DOTALL)
    assert tree
    for line in tree.group(0).splitlines()[1:-1]:
        names = re.match(r"(  )?((?:\S+[/.]\S* ?)+)", line)
        assert names
        for name in names.group(2).split():
            place = ROOT / "harness" / name if names.group(1) else ROOT / name.replace("NN-name/", "")
            assert place.exists(), name
    helped = subprocess.run([sys.executable, ROOT / "server.py", "--help"], capture_output=True, text=True, check=True)
    # `--group` is uv's own, and a help text names it too.
    named, there = (set(re.findall(r"--[a-z][a-z-]+", each)) - {"--group"} for each in (text, helped.stdout))
    assert named == there
    assert "server.py doctor" in text and "doctor" in helped.stdout


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.name)
def test_the_settings_file_can_be_used_as_it_stands(readme: Path, tmp_path: Path, monkeypatch: Any) -> None:
    block = re.search(r"```toml\n(.*?)```", readme.read_text("utf-8"), re.DOTALL)
    assert block
    (tmp_path / "class.toml").write_text(block.group(1), "utf-8")
    monkeypatch.setattr(sys, "argv", ["server.py", "--settings", str(tmp_path / "class.toml")])
    options, labs = read_arguments(load("en")), find_labs(ROOT / "labs")
    chosen = decide(options, labs, faults=FAULTS, demos=ROOT / "demo_workspace")
    named = set(re.findall(r"^[a-z_]+", block.group(1), re.MULTILINE))
    assert named == {*NAMES, *chosen.settings} and chosen.settings.keys() == DEFAULTS.keys() | labs["07"].settings


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.name)
def test_every_fault_is_named(readme: Path) -> None:
    assert {name for name in FAULTS if f"`{name}`" in readme.read_text("utf-8")} == set(FAULTS)
