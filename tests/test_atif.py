"""A session as ATIF: other tools take it, and rebuild the calls after a compaction as they were sent."""

import asyncio
import functools
import json
import os
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory

from harness import events as e
from harness.discovery import find_labs
from harness.exporting import atif
from harness.exporting.atif import trajectory_of
from harness.messages import ToolCall
from harness.problems import Problem
from harness.recorded import Recorded
from harness.replay import rebuild
from harness.request import Wire
from harness.result_events import Decision
from harness.sizes import Usage
from tests.harness_support import ROOT, library, run_sample
from tests.web_session import FoldedSession, handed_session

LABS = find_labs(ROOT / "labs")
# Runs in Phoenix's own environment: for each file that it is told, what its converter makes of it, in a line.
CONVERT = """
import json, sys
from phoenix.client.helpers.atif import _convert_atif_trajectories_to_spans as convert
for name in sys.stdin:
    print(json.dumps(convert([json.load(open(name.strip(), encoding="utf-8"))])), flush=True)
"""
Convert = Callable[[dict[str, Any]], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Convert]:
    """Return what makes spans of a document: Phoenix's own converter, started once, since that takes seconds."""
    command = os.environ.get("LAB_TEST_PHOENIX", "")
    if not Path(command).is_file():
        reason = "LAB_TEST_PHOENIX names no `phoenix` command of an environment of its own."
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    python, file = Path(command).parent / "python", tmp_path_factory.mktemp("atif") / "trajectory.json"
    log = file.with_suffix(".log")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with log.open("w") as errors, subprocess.Popen([python, "-c", CONVERT], stderr=errors, **pipes) as process:
        assert process.stdin and process.stdout

        def convert(document: dict[str, Any]) -> list[dict[str, Any]]:
            file.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
            print(file, file=process.stdin, flush=True)
            line = process.stdout.readline()
            assert line, log.read_text("utf-8")
            return json.loads(line)

        yield convert
        process.stdin.close()
        process.wait(120)
    assert "newer than" not in log.read_text("utf-8"), "it knows this version of the format"


@functools.cache
def lived(number: str) -> tuple[list[Recorded], dict[str, Any]]:
    """Run every sample of a lab; return the session's events, and the session as a trajectory."""

    async def live(data: Path) -> tuple[str, list[Recorded]]:
        async with library(data, lab=number) as opened:
            session = await opened.create(language="en")
            for sample in range(1, 1 + sum(len(group.samples) for group in session.lab.groups)):
                await run_sample(session, sample)
            return session.id, list(session.records)

    with tempfile.TemporaryDirectory() as data:
        id, records = asyncio.run(live(Path(data)))
    return records, trajectory_of(id, records)


def read(span: dict[str, Any]) -> list[Wire]:
    """Return the messages that a call of the converter's got, as they would stand on the wire."""
    prompt = json.loads(span["attributes"].get("input.value", "[]"))
    for message in prompt:
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return prompt


def sent(records: Sequence[Recorded], call: int, child: int = 0) -> list[Wire]:
    """Return the messages of a call as the converter can know them: a summary first, as a system message."""
    messages = []
    for message in rebuild([(each.seq, each.event) for each in records], call, child).messages:
        told = {name: value for name, value in message.items() if name in ("role", "content", "tool_call_id")}
        if calls := message.get("tool_calls"):
            functions = [(x["id"], x["function"]) for x in calls]
            told["tool_calls"] = [
                {"function": {"name": f["name"], "arguments": json.loads(f["arguments"])}, "id": id}
                for id, f in functions
            ]
        messages.append(told)
    summaries = {each.event.summary for each in records if isinstance(each.event, e.ContextCompacted)}
    first = [m for m in messages if m["role"] in ("user", "system") and any(s in m["content"] for s in summaries)]
    return [{"role": "system", "content": m["content"]} for m in first] + [m for m in messages if m not in first]


def calls_of(records: Sequence[Recorded]) -> list[int]:
    """Return the numbers of the turns' calls that were answered."""
    return [each.event.call for each in records if isinstance(each.event, e.ModelCallEnded)]


def compacted() -> FoldedSession:
    """Two tasks, the first of which became a summary, and a third."""
    session = FoldedSession().begin(budget=100)
    call = ToolCall("c1", "read", '{"path": "incident-log.md"}')
    session.task("Sort the log")
    session.call_started()
    session.call_ended("I look.", call)
    session.tool(call, "08:03 pool 100/100 " * 40)
    session.call_started()
    session.call_ended("It is the pool.")
    session.end()
    session.task("Which are guesses?")
    session.call_started()
    session.call_ended("The push.", usage=Usage())
    session.compact()
    session.end()
    session.task("And now?")
    session.call_started()
    session.call_ended("Nothing more.")
    session.end()
    return session


def count(records: Sequence[Recorded], kind: type) -> int:
    """Return how many events of a kind there are, those of sub-agents not among them."""
    return sum(isinstance(each.event, kind) for each in records)


@pytest.mark.parametrize("number", LABS)
def test_a_session_of_every_lab_is_a_valid_trajectory(number: str) -> None:
    records, made = lived(number)
    checked = Trajectory.model_validate(made)
    assert checked.schema_version == "ATIF-v1.7"
    fresh = [step for step in checked.steps if step.source == "agent" and not step.is_copied_context]
    assert len(fresh) == count(records, e.ModelCallEnded)
    assert len(checked.subagent_trajectories or []) == count(records, e.ChildStarted)
    changes = [step["extra"]["context_management"] for step in made["steps"] if "context_management" in extra(step)]
    assert [each["type"] for each in changes].count("compaction") == count(records, e.ContextCompacted)


@pytest.mark.parametrize("number", LABS)
def test_phoenix_makes_a_span_of_every_call_of_every_lab(number: str, converted: Convert) -> None:
    records, made = lived(number)
    spans = converted(made)
    inside = [each.event for each in records if isinstance(each.event, e.ChildEvent)]
    calls = count(records, e.ModelCallEnded) + sum(isinstance(each.event, e.ModelCallEnded) for each in inside)
    assert sum(span["span_kind"] == "LLM" for span in spans) == calls > 0
    tools = [each.event if isinstance(each.event, e.ToolEnded) else getattr(each.event, "event", 0) for each in records]
    assert sum(span["span_kind"] == "TOOL" for span in spans) == sum(isinstance(each, e.ToolEnded) for each in tools)
    # Where nothing but compactions changes what is sent, each call is rebuilt.
    if number in ("07", "08"):
        llm = [span for span in spans if span["span_kind"] == "LLM"]
        assert [read(span) for span in llm] == [sent(records, call) for call in calls_of(records)]


def extra(step: dict[str, Any]) -> dict[str, Any]:
    return step.get("extra", {})


def test_the_call_after_a_compaction_is_rebuilt_as_it_was_sent(converted: Convert) -> None:
    session = compacted()
    spans = converted(trajectory_of("s1", session.records))
    llm = [span for span in spans if span["span_kind"] == "LLM"]
    last = read(llm[-1])
    assert [message["role"] for message in last] == ["system", "system", "user", "assistant", "user"]
    assert "pool 100/100" in last[0]["content"] and last[0]["content"].startswith("[Background")
    assert last[1]["content"].startswith("You are a careful coding agent.")
    assert [message["content"] for message in last[2:]] == ["Which are guesses?", "The push.", "And now?"]
    assert [read(span) for span in llm] == [sent(session.records, call) for call in (1, 2, 3, 5)]
    [chain] = [span for span in spans if span["name"] == "compaction 1"]
    assert chain["attributes"]["output.value"] == last[0]["content"]


def test_a_cut_inside_a_task_a_second_one_and_an_undoing_are_rebuilt_too(converted: Convert) -> None:
    session = FoldedSession().begin()
    session.task("Look at every log")
    for number in range(1, 6):
        call = ToolCall(f"c{number}", "read", f'{{"path": "{number}.log"}}')
        session.call_started()
        session.call_ended(f"I look at {number}.", call)
        session.tool(call, f"log {number} " * 30)
        if number in (3, 5):
            session.cut(2)
    session.call_started()
    session.call_ended("All is well.")
    session.end()
    session.undo()
    session.task("Really?")
    session.call_started()
    session.call_ended("Really.")
    session.end()
    made = trajectory_of("s1", session.records)
    Trajectory.model_validate(made)
    spans = converted(made)
    llm = [span for span in spans if span["span_kind"] == "LLM"]
    assert [read(span) for span in llm] == [sent(session.records, call) for call in calls_of(session.records)]
    second = next(x for x in made["steps"] if extra(x).get("context_management", {}).get("number") == 2)
    told = second["extra"]["context_management"]
    assert told["before"]["tokens_estimated"] > told["after"]["tokens_estimated"] and told["unit"] == "tokens"
    steps = {step["step_id"]: step for step in made["steps"]}
    assert [steps[id]["source"] for id in told["kept_step_ids"]] == ["user", "agent"]
    assert second["step_id"] not in told["removed_step_ids"] and told["removed_step_ids"][0] < second["step_id"]


def test_only_reported_tokens_are_tokens_and_copies_are_not_counted_again() -> None:
    made = trajectory_of("s1", compacted().records)
    Trajectory.model_validate(made)
    agents = [step for step in made["steps"] if step["source"] == "agent"]
    assert [step.get("is_copied_context", False) for step in agents] == [False, False, False, True, False]
    with_usage = [step for step in agents if "metrics" in step]
    assert len(with_usage) == 3 and "metrics" not in agents[2] and "metrics" not in agents[3]
    total = made["final_metrics"]
    assert total["total_prompt_tokens"] == sum(step["metrics"]["prompt_tokens"] for step in with_usage)
    assert total["extra"] == {"model_calls": 4, "model_calls_with_usage": 3}
    assert total["total_steps"] == sum(not step.get("is_copied_context", False) for step in made["steps"])
    assert [step["step_id"] for step in made["steps"]] == list(range(1, len(made["steps"]) + 1))
    boundary = next(x for x in made["steps"] if "context_management" in extra(x))
    assert boundary["extra"]["context_management"]["summary_usage_reported"] == {"prompt": 1204, "completion": 188}


def test_sub_agents_stand_in_the_file_below_their_calls(converted: Convert) -> None:
    session = handed_session()
    made = trajectory_of("s1", session.records)
    checked = Trajectory.model_validate(made)
    assert [each.trajectory_id for each in checked.subagent_trajectories or []] == [
        f"s1-sub-agent-{number}" for number in session.state.children
    ]
    spans = converted(made)
    by_id = {span["context"]["span_id"]: span for span in spans}
    inner = [span for span in spans if span["span_kind"] == "AGENT" and span.get("parent_id") in by_id]
    parents = [by_id[span["parent_id"]] for span in inner]
    assert [span["span_kind"] for span in parents if span["span_kind"] == "TOOL"]
    assert len({span["context"]["trace_id"] for span in spans}) == 1


def test_a_sub_agent_that_did_nothing_yet_is_left_out() -> None:
    session = FoldedSession().begin()
    session.task("Look")
    session.call_started()
    call = ToolCall("t1", "task", '{"role": "explorer", "task": "look"}')
    session.call_ended("", call)
    session.add(e.ToolStarted(task=1, call_id="t1", name="task", arguments=call.arguments))
    session.add(e.ChildStarted(task=1, call_id="t1", child=1, role="explorer"))
    made = trajectory_of("s1", session.records)
    Trajectory.model_validate(made)
    assert "subagent_trajectories" not in made and "subagent_trajectory_ref" not in json.dumps(made)


def test_secrets_are_masked_also_in_arguments_and_in_the_name_of_a_call(converted: Convert) -> None:
    key = "sk-" + "a1B2c3D4" * 5
    session = FoldedSession().begin()
    session.task(f"Use {key}")
    session.call_started()
    command = json.dumps({"command": f"curl -H 'Authorization: Bearer {key}'"})
    calls = [ToolCall(f"{key}{n}", "bash", command) for n in (1, 2)]
    broken = ToolCall("c3", "bash", f'{{"password": "hunter2x", "key": "{key}"')
    session.call_ended("", *calls, broken)
    for call in (*calls, broken):
        session.tool(call, f"export DB_PASSWORD=correcthorse {key}")
    made = trajectory_of("s1", session.records)
    Trajectory.model_validate(made)
    text = json.dumps(made)
    assert key not in text and "hunter2x" not in text and "correcthorse" not in text and "[masked]" in text
    assert converted(made)


def test_arguments_that_are_no_object_and_results_that_were_shortened_keep_what_they_were() -> None:
    session = FoldedSession().begin()
    session.task("Look")
    session.call_started()
    deep = "[" * 60 + "]" * 60
    told = {"a": "{broken", "b": f'{{"x": {deep}}}', "c": '{"x": NaN}'}
    calls = [ToolCall(id, "read", arguments) for id, arguments in told.items()]
    session.call_ended("", *calls)
    for call in calls:
        session.tool(call, "long " * 200)
    session.decide(Decision("a", "single", 1000, "[shortened]", ".tool-results/a"))
    session.call_started()
    session.call_ended("Done.")
    made = trajectory_of("s1", session.records)
    Trajectory.model_validate(made)
    step = next(x for x in made["steps"] if "tool_calls" in x)
    assert [call["extra"]["arguments_text"] for call in step["tool_calls"]] == [call.arguments for call in calls]
    results = step["observation"]["results"]
    assert results[0]["content"] == "[shortened]" and results[0]["extra"]["whole"].startswith("long long")
    assert results[1]["content"].startswith("long")


def test_a_session_in_which_nothing_happened_is_told_as_such() -> None:
    with pytest.raises(Problem, match="export_nothing"):
        trajectory_of("s1", [])


def test_the_version_is_the_projects() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"] == atif.VERSION
