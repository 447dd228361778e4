"""Scripts for long tasks: what a summary names as done is not done again, what it forgot is."""

import json
from pathlib import Path

import pytest

from offline_model.chat import Reply
from offline_model.respond import respond
from offline_model.script import Flow, load_flows
from tests.offline_support import PREFACE, called, request, said, user

SCRIPT = r"""
[[flows]]
when = '(?P<path>[\w.-]+\.md)'
[[flows.steps]]
call = "read"
arguments = { path = "{path}" }

[[flows]]
when = 'all the files of (?P<who>\w+) in plan\.md'
in_order = true
[[flows.steps]]
call = "bash"
arguments = { command = "make test" }
[[flows.steps]]
from = 1
to = 12
call = "read"
arguments = { path = "{who}-{n:02}.csv", limit = 5 }
[[flows.steps]]
call = "read"
arguments = { path = "code.py" }
[[flows.steps]]
result = '^limit = (?P<limit>\d+)$'
call = "edit"
arguments = { path = "code.py", old = "limit = {limit}", new = "limit = {limit}0" }
[[flows.steps]]
call = "bash"
arguments = { command = "make test" }
"""
TASK = user("Go through all the files of anna in plan.md.")
BASH = ("bash", {"command": "make test"}, "OK")
CODE = ("read", {"path": "code.py"}, "x = 1\nlimit = 7\n")
EDIT = ("edit", {"path": "code.py", "old": "limit = 7", "new": "limit = 70"}, "Replaced one place.")


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Flow, ...]:
    path = tmp_path_factory.mktemp("script") / "offline.toml"
    path.write_text(SCRIPT)
    return load_flows([path])


def day(number: int) -> tuple[str, dict, str]:
    return "read", {"path": f"anna-{number:02}.csv", "limit": 5}, "1,paid\n" * 3


def steps(*made: tuple[str, dict, str]) -> list[dict]:
    return [message for i, each in enumerate(made) for message in called(*each, call_id=f"c{i}")]


def summary(*lines: str, role: str = "user") -> dict:
    text = "\n".join(f"- {line}" for line in lines)
    return {"role": role, "content": f"{PREFACE['en']}\n\n## Goal\n- x\n### Done\n{text}"}


def following(flows: tuple[Flow, ...], *messages: dict) -> tuple[str, str]:
    """Return the tool that is called next and its argument, or two empty texts."""
    made: Reply = respond(request(*messages), flows)
    if not made.calls:
        return "", ""
    values = json.loads(made.calls[0].arguments)
    return made.calls[0].name, values.get("path") or values["command"]


def test_a_flow_in_order_is_tried_first_and_begins_at_its_first_step(flows: tuple[Flow, ...]) -> None:
    assert following(flows, TASK) == ("bash", "make test")
    assert following(flows, user("Read plan.md")) == ("read", "plan.md")


@pytest.mark.parametrize("kept", range(13))
@pytest.mark.parametrize("role", ["user", "system"])
def test_what_the_summary_names_as_done_is_not_done_again(flows: tuple[Flow, ...], kept: int, role: str) -> None:
    files = [f"anna-{n:02}.csv" for n in range(1, kept + 1)]
    named = [f"read {files[0]} … {files[-1]}"] if kept > 2 else [f"read {name}" for name in files]
    notes = summary("bash `make test`: FAILED", *named, role=role)
    expected = ("read", f"anna-{kept + 1:02}.csv") if kept < 12 else ("read", "code.py")
    assert following(flows, notes, TASK) == expected
    tail = steps(*(day(n) for n in range(kept + 1, 13)))
    assert following(flows, notes, TASK, *tail) == ("read", "code.py")
    assert following(flows, notes, TASK, *tail, user("Continue.")) == ("read", "code.py")


def test_what_the_summary_forgot_is_done_again_the_first_of_it_first(flows: tuple[Flow, ...]) -> None:
    notes = summary("bash `make test`: OK", "read anna-01.csv, anna-02.csv, anna-04.csv … anna-06.csv, anna-08.csv")
    assert following(flows, notes, TASK) == ("read", "anna-03.csv")
    assert following(flows, notes, TASK, *steps(day(3))) == ("read", "anna-07.csv")
    assert following(flows, summary("read anna-01.csv … anna-12.csv"), TASK) == ("bash", "make test")


def test_the_same_call_twice_is_two_steps(flows: tuple[Flow, ...]) -> None:
    all_read = "read anna-01.csv … anna-12.csv, code.py"
    last = ("bash", "make test")
    done = summary("bash `make test`: FAILED", all_read, "edit code.py: `limit = 7` → `limit = 70`")
    assert following(flows, done, TASK) == last
    assert following(flows, done, TASK, *steps(BASH)) == ("", "")
    twice = summary("bash `make test` ×2: OK", all_read, "edit code.py: `limit = 7` → `limit = 70`")
    # Nothing stands between, so the answer has no run to show; but nothing is made a third time.
    assert following(flows, twice, TASK) == ("", "")


def test_a_step_that_needs_a_result_has_it_looked_up_again(flows: tuple[Flow, ...]) -> None:
    notes = summary("bash `make test`: FAILED", "read anna-01.csv … anna-12.csv, code.py")
    assert following(flows, notes, TASK) == ("read", "code.py"), "what it held is gone"
    made = respond(request(notes, TASK, *steps(CODE)), flows).calls[0]
    assert made.name == "edit" and json.loads(made.arguments)["new"] == "limit = 70"
    changed = ("read", {"path": "code.py"}, "limit = many\n")
    assert following(flows, notes, TASK, *steps(changed)) == ("", ""), "it is not looked up for ever"
    assert following(flows, notes, TASK, *steps(CODE, EDIT)) == ("bash", "make test")


def test_what_was_done_for_another_task_does_not_count(flows: tuple[Flow, ...]) -> None:
    done = summary("earlier: bash `make test`: OK", "earlier: read anna-01.csv … anna-12.csv")
    assert following(flows, done, TASK) == ("bash", "make test")
    running = summary("bash `make test`: OK", "read anna-01.csv … anna-12.csv")
    assert following(flows, running, said("All read."), TASK) == ("bash", "make test")
    assert following(flows, running, TASK) == ("read", "code.py")


def test_a_failed_call_is_not_done(flows: tuple[Flow, ...]) -> None:
    notes = summary("bash `make test`: OK", "failed: read anna-01.csv: `anna-01.csv` does not exist.")
    assert following(flows, notes, TASK) == ("read", "anna-01.csv")


def test_what_stands_beside_a_summary_names_nothing_as_done(flows: tuple[Flow, ...]) -> None:
    notes = summary("bash `make test`: OK")
    notes["content"] += "\n\n[Recently read files]\n- read anna-01.csv … anna-12.csv\n"
    assert following(flows, notes, TASK) == ("read", "anna-01.csv")


@pytest.mark.parametrize("step", ["from = 1", 'from = "x"\nto = 2'])
def test_a_count_that_is_none_is_refused(tmp_path: Path, step: str) -> None:
    path = tmp_path / "offline.toml"
    path.write_text(f"[[flows]]\nwhen = 'x'\nin_order = true\n[[flows.steps]]\n{step}\ncall = 'read'\n")
    with pytest.raises(ValueError, match="is not a script"):
        load_flows([path])
