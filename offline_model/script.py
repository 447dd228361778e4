"""A lab's script: which tool is called next. Its steps look only at what stands in the request: the text of
the task, the tools called for it so far, and what the last result says. Knows no answers.

A flow with `after` is for a task that fits a context. One that is `in_order` is for a long one: its earlier calls
may have given way to a summary, so each step is made unless the task's messages or the summary's list name it as done.

    [[flows]]
    when = '(?P<path>\\S+\\.md)'        # on the text of the task; the first flow that matches is taken
    unless = 'without reading'         # but not when this matches
    fits = '- (?P<name>\\w+): .*'       # and only where one such place in a list of the client's fits the task
    [[flows.steps]]
    after = ["read"]                   # the calls of this task so far, in order
    result = 'limit = (?P<limit>\\d+)'  # on the last result
    call = "edit"
    seen = 'in `(?P<file>[^`]+)`'      # on any message of the request, the newest that has it
    arguments = { path = "{path}" }    # {name} is filled from the named groups of `when`, `seen` and `result`
    beside = [{ path = "b.md" }]       # the same tool once more in the same reply, with other arguments

    [[flows]]
    when = 'all the daily files'
    in_order = true                    # such flows are tried first: their `when` names one whole task
    [[flows.steps]]                    # no `after`: the first step comes next that is not done yet
    from = 1
    to = 30                            # thirty steps, with {n} or, with two digits, {n:02}
    call = "read"
    arguments = { path = "day-{n:02}.csv" }
    [[flows.steps]]                    # the same call again is a step of its own: it is done when it was made twice
    result = 'limit = (?P<limit>\\d+)'  # on any result of this task; if none has it, the step before is made again
    call = "edit"
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offline_model.background import told
from offline_model.chat import Call, ChatRequest
from offline_model.deeds import deed_of
from offline_model.fitting import fitting
from offline_model.verdict import read_verdict


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a flow: the call that is made when its conditions hold."""

    after: tuple[str, ...]
    result: re.Pattern[str] | None
    call: str
    arguments: tuple[tuple[str, str | int], ...]
    seen: re.Pattern[str] | None = None
    beside: tuple[tuple[tuple[str, str | int], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Flow:
    """What is done for one kind of task."""

    when: re.Pattern[str]
    unless: re.Pattern[str] | None
    steps: tuple[Action, ...]
    in_order: bool = False
    fits: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """The call that comes next, with its arguments filled in. beside: those of more calls in the same reply."""

    tool: str
    arguments: dict[str, str | int]
    beside: tuple[dict[str, str | int], ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Return what tells whether this call was made already."""
        deed = deed_of(Call("", self.tool, json.dumps(self.arguments, ensure_ascii=False)))
        return deed.key if deed else (self.tool, "")


def load_flows(scripts: Sequence[Path]) -> tuple[Flow, ...]:
    """Return the flows of the scripts in the order in which they are tried. Raises ValueError that names the file."""
    flows: list[Flow] = []
    for path in scripts:
        try:
            with path.open("rb") as file:
                data = tomllib.load(file)
            flows += [_flow(entry) for entry in data.get("flows", [])]
        except (KeyError, TypeError, AttributeError, ValueError, re.error) as error:
            raise ValueError(f"`{path}` is not a script for the offline model: {error}") from error
    return tuple(sorted(flows, key=lambda flow: not flow.in_order))


def next_call(flows: Sequence[Flow], request: ChatRequest) -> Planned | None:
    """Return the call that the script makes now, or None when it is time to answer."""
    if read_verdict(request.task):
        # What a check printed names files and tests; a flow that knows nothing of checks takes them for a request.
        flows = [flow for flow in flows if "check_output" in flow.when.pattern]
    for flow in flows:
        found = flow.when.search(request.question)
        if not found or (flow.unless and flow.unless.search(request.question)):
            continue
        if (there := fitting(flow.fits, request, request.question)) is not None:
            following = _next_in_order if flow.in_order else _next_step
            return following(flow, found.groupdict() | there, request)
    return None


def _next_step(flow: Flow, words: dict[str, str | None], request: ChatRequest) -> Planned | None:
    steps = request.steps
    called = tuple(step.call.name for step in steps)
    last = steps[-1].result if steps else ""
    for action in flow.steps:
        if action.after != called:
            continue
        found = action.result.search(last) if action.result else None
        there = _newest(action.seen, [turn.text for turn in request.turns])
        if (action.result and not found) or there is None:
            continue
        return _planned(action, words | there | (found.groupdict() if found else {}))
    return None


def _next_in_order(flow: Flow, words: dict[str, str | None], request: ChatRequest) -> Planned | None:
    """Return the first step that nothing in the request names as done."""
    made = [deed for step in request.steps if (deed := deed_of(step.call, step.result))]
    done = Counter(deed.key for deed in (*told(request), *made) if deed.ok)
    before: Planned | None = None
    for action in flow.steps:
        planned = _planned(action, words)
        if done[planned.key]:
            done[planned.key] -= 1
            before = planned
            continue
        found = _newest(action.result, [step.result for step in request.steps])
        if found is None and before and not (made and made[-1].key == before.key):
            # What this step builds on left the context, so it has to be looked up once more.
            return before
        return _planned(action, words | found) if found is not None else None
    return None


def _newest(pattern: re.Pattern[str] | None, texts: Sequence[str]) -> dict[str, str | None] | None:
    """Return the groups of the newest text that has the pattern; None when none has it, without a pattern none."""
    if not pattern:
        return {}
    matches = (pattern.search(text) for text in reversed(texts))
    return next((match.groupdict() for match in matches if match), None)


def _planned(action: Action, words: dict[str, str | None]) -> Planned:
    filled = [{name: _fill(value, words) for name, value in each} for each in (action.arguments, *action.beside)]
    return Planned(action.call, filled[0], tuple(filled[1:]))


def _fill(value: str | int, words: dict[str, str | None]) -> str | int:
    if isinstance(value, int):
        return value
    for name, word in words.items():
        value = value.replace("{" + name + "}", word or "")
    return value


def _flow(entry: dict[str, object]) -> Flow:
    unless, fits = (_pattern(entry[name]) if entry.get(name) else None for name in ("unless", "fits"))
    steps = tuple(action for step in entry.get("steps", []) for action in _actions(step))  # type: ignore[attr-defined]
    in_order = bool(entry.get("in_order"))
    return Flow(_pattern(entry["when"]), unless, steps, in_order, fits)


def _actions(step: dict[str, object]) -> Iterator[Action]:
    """Yield the step, once for each number from `from` to `to` where it has them."""
    result, seen = step.get("result"), step.get("seen")
    numbers = range(int(step["from"]), int(step["to"]) + 1) if "from" in step else (None,)  # type: ignore[call-overload]
    for number in numbers:
        yield Action(
            after=tuple(step.get("after", [])),  # type: ignore[arg-type]
            result=_pattern(result) if result else None,
            call=str(step["call"]),
            arguments=tuple((name, _count(value, number)) for name, value in step.get("arguments", {}).items()),  # type: ignore[attr-defined]
            seen=_pattern(seen) if seen else None,
            beside=tuple(tuple(each.items()) for each in step.get("beside", [])),  # type: ignore[attr-defined]
        )


def _count(value: str | int, number: int | None) -> str | int:
    if number is None or isinstance(value, int):
        return value
    return value.replace("{n}", str(number)).replace("{n:02}", f"{number:02}")


def _pattern(text: object) -> re.Pattern[str]:
    return re.compile(str(text), re.IGNORECASE | re.MULTILINE)
