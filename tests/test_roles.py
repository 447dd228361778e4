"""Role files: what is offered, and that whatever is wrong with one is a line of its own and costs nothing else."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness import events as e
from harness.discovery import find_labs, load
from harness.hooks import Added, gather
from harness.roles import FOLDER, MOST_ROLES, read_roles
from harness.workspace import Workspace
from tests.checks_support import ANYTHING
from tests.harness_support import ROOT, events, library, run

GOOD = "---\nname: {name}\ndescription: Looks.\n{more}---\nYou look.\n"


def placed(root: Path, name: str, content: str | bytes) -> Path:
    path = root / FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def added(root: Path, *, trusted: bool = True) -> Added:
    labs = find_labs(ROOT / "labs")
    return gather(
        (load(labs["01"]), load(labs["04"])), Workspace(root, "w", accepted=ANYTHING if trusted else frozenset())
    )


def problems(found: Added) -> list[tuple[str, str, str]]:
    return [(told.name, told.problem, told.detail) for told in found.sources if told.problem]


def test_the_labs_own_roles_are_offered_and_only_the_fixer_may_change_anything() -> None:
    found = read_roles([(ROOT / "labs/04-sub-agents", "roles")])
    assert [role.name for role in found.roles] == ["explorer", "fixer", "reviewer"]
    assert [role.tools for role in found.roles] == [None, ("read", "search", "edit", "write", "bash"), None]
    assert not any(source.problem for source in found.problems)


def test_a_trusted_folder_adds_its_own_and_an_untrusted_one_asks(tmp_path: Path) -> None:
    placed(tmp_path, "purser.md", GOOD.format(name="purser", more="tools: read\n"))
    untrusted = added(tmp_path, trusted=False)
    assert problems(untrusted) == [(f"{FOLDER}/purser.md", "untrusted", "")] and "purser" not in untrusted.system
    trusted = added(tmp_path)
    assert not problems(trusted) and "- purser: Looks." in trusted.system and "You look." not in trusted.system
    wanted = trusted.tools["task"].delegate({"role": "purser", "task": " count "})
    assert (wanted.role, wanted.text, wanted.tools) == ("purser", "count", ("read",))
    assert wanted.sources[-1].text == "You look."


BAD: dict[str, tuple[str | bytes, str, str]] = {
    "header": ("You look.\n", "role_header", ""),
    "broken": ("---\nname: a\nnonsense\n---\nx\n", "role_broken", "3"),
    "no-name": ("---\ndescription: d\n---\nx\n", "role_no_name", ""),
    "name": ("---\nname: ../../x y\ndescription: d\n---\nx\n", "role_name", "../../x y"),
    "description": ("---\nname: a\n---\nx\n", "role_no_description", ""),
    "words": ('---\nname: a\ndescription: "x\\u202ey"\n---\nx\n', "role_words", ""),
    "empty": ("---\nname: a\ndescription: d\n---\n\n", "role_empty", ""),
    "twin": (GOOD.format(name="explorer", more=""), "role_twin", "roles/explorer.md"),
    "encoding": (GOOD.format(name="a", more="").encode() + b"\xff\xfe\x00", "encoding", ""),
    "tool": (GOOD.format(name="a", more="tools: read, hammer, saw\n"), "tool_missing", "hammer, saw"),
}


@pytest.mark.parametrize("name", BAD)
def test_whatever_is_wrong_is_one_line_and_the_others_are_offered(tmp_path: Path, name: str) -> None:
    content, code, detail = BAD[name]
    placed(tmp_path, f"{name}.md", content)
    placed(tmp_path, "zz.md", GOOD.format(name="zz", more=""))
    found = added(tmp_path)
    assert problems(found) == [(f"{FOLDER}/{name}.md", code, detail)]
    assert "- zz: Looks." in found.system and "- explorer: " in found.system
    assert found.tools["task"].delegate({"role": "zz", "task": "x"}).text == "x"
    if code == "tool_missing":
        assert "- a: Looks." in found.system, "offered without the tools that are not there"


def test_a_huge_file_a_loop_of_links_a_way_out_and_a_pipe_are_lines_too(tmp_path: Path) -> None:
    root = tmp_path / "w"
    placed(root, "a.md", GOOD.format(name="huge", more="") + "word " * 1_000_000)
    (root / FOLDER / "b.md").symlink_to("b.md")
    (tmp_path / "secret.md").write_text(GOOD.format(name="secret", more=""))
    (root / FOLDER / "c.md").symlink_to(tmp_path / "secret.md")
    os.mkfifo(root / FOLDER / "d.md")
    (root / FOLDER / "e.md").mkdir()
    found = added(root)
    codes = {name.rpartition("/")[2]: code for name, code, _ in problems(found)}
    assert codes == {"a.md": "too_large", "b.md": "link_loop", "c.md": "outside", "d.md": "no_file", "e.md": "no_file"}
    assert "- huge: Looks." in found.system and "secret" not in found.system


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("link", [FOLDER, ".context-lab"])
def test_a_folder_that_a_link_leads_out_to_is_not_even_listed(tmp_path: Path, link: str, trusted: bool) -> None:
    root, away = tmp_path / "w", tmp_path / "away"
    (away / "roles").mkdir(parents=True)
    (away / "salaries.md").write_text(GOOD.format(name="leak", more=""))
    (away / "roles" / "salaries.md").write_text(GOOD.format(name="leak", more=""))
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(away)
    found = added(root, trusted=trusted)
    assert problems(found) == [(FOLDER, "outside", "")] and "salaries" not in str(found.sources)


def test_so_many_roles_are_offered_and_the_rest_is_counted(tmp_path: Path) -> None:
    for number in range(MOST_ROLES + 3):
        placed(tmp_path, f"r{number:03}.md", GOOD.format(name=f"r{number:03}", more=""))
    found = added(tmp_path)
    assert problems(found) == [(FOLDER, "roles_many", "3")]
    assert found.system.count("Looks.") == MOST_ROLES


def test_a_role_without_a_tool_it_names_works_and_the_agent_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = tmp_path / "w"
        placed(source, "a.md", GOOD.format(name="fixer2", more="tools: read, hammer\n"))
        (source / "x.md").write_text("# X\n")
        (tmp_path / "data").mkdir()
        async with library(tmp_path / "data", lab="04", source=source) as opened:
            session = await opened.create(language="en")
            session.workspace = replace(session.workspace, accepted=ANYTHING, answers=None)
            await run(session, "Read x.md.")
            [told] = [each for each in events(session, e.InstructionsSet)[-1].sources if each.problem]
            assert (told.kind, told.problem, told.detail) == ("roles", "tool_missing", "hammer")
            assert session.state.tasks[-1].ended == "answered"

    asyncio.run(scenario())
