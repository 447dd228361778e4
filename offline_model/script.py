"""A lab's script: which tool is called next. Its steps look only at what stands in the request: the text of
the task, the tools called for it so far, and what the last result says. Knows no answers.

    [[flows]]
    when = '(?P<path>\\S+\\.md)'        # on the text of the task; the first flow that matches is taken
    unless = 'without reading'         # but not when this matches
    [[flows.steps]]
    after = ["read"]                   # the calls of this task so far, in order
    result = 'limit = (?P<limit>\\d+)'  # on the last result
    call = "edit"
    arguments = { path = "{path}" }    # {name} is filled from the named groups of `when` and `result`
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offline_model.chat import ChatRequest, Step


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a flow: the call that is made when its conditions hold."""

    after: tuple[str, ...]
    result: re.Pattern[str] | None
    call: str
    arguments: tuple[tuple[str, str | int], ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """What is done for one kind of task."""

    when: re.Pattern[str]
    unless: re.Pattern[str] | None
    steps: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """The call that comes next, with its arguments filled in."""

    tool: str
    arguments: dict[str, str | int]


def load_flows(scripts: Sequence[Path]) -> tuple[Flow, ...]:
    """Return the flows of the scripts, in order. Raises ValueError that names the file."""
    flows: list[Flow] = []
    for path in scripts:
        try:
            with path.open("rb") as file:
                data = tomllib.load(file)
            flows += [_flow(entry) for entry in data.get("flows", [])]
        except (KeyError, TypeError, AttributeError, re.error, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"`{path}` is not a script for the offline model: {error}") from error
    return tuple(flows)


def next_call(flows: Sequence[Flow], request: ChatRequest) -> Planned | None:
    """Return the call that the script makes now, or None when it is time to answer."""
    for flow in flows:
        found = flow.when.search(request.question)
        if found and not (flow.unless and flow.unless.search(request.question)):
            return _next_step(flow, found.groupdict(), request.steps)
    return None


def _next_step(flow: Flow, words: dict[str, str | None], steps: tuple[Step, ...]) -> Planned | None:
    called = tuple(step.call.name for step in steps)
    last = steps[-1].result if steps else ""
    for action in flow.steps:
        if action.after != called:
            continue
        found = action.result.search(last) if action.result else None
        if action.result and not found:
            continue
        groups = words | (found.groupdict() if found else {})
        return Planned(action.call, {name: _fill(value, groups) for name, value in action.arguments})
    return None


def _fill(value: str | int, words: dict[str, str | None]) -> str | int:
    if isinstance(value, int):
        return value
    for name, word in words.items():
        value = value.replace("{" + name + "}", word or "")
    return value


def _flow(entry: dict[str, object]) -> Flow:
    unless = entry.get("unless")
    steps = tuple(_action(step) for step in entry.get("steps", []))  # type: ignore[attr-defined]
    return Flow(_pattern(entry["when"]), _pattern(unless) if unless else None, steps)


def _action(step: dict[str, object]) -> Action:
    result = step.get("result")
    return Action(
        after=tuple(step.get("after", [])),  # type: ignore[arg-type]
        result=_pattern(result) if result else None,
        call=str(step["call"]),
        arguments=tuple(step.get("arguments", {}).items()),  # type: ignore[attr-defined]
    )


def _pattern(text: object) -> re.Pattern[str]:
    return re.compile(str(text), re.IGNORECASE | re.MULTILINE)
