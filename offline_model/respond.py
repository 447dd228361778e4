"""Decides what a request gets: a summary, the next call of a script, or an answer. Pure: the same request gets
the same reply.
"""

import hashlib
import json
import re
from collections.abc import Sequence

from offline_model.answer import answer, cannot_mend, language_of
from offline_model.calls import HANDS_ON, label_of
from offline_model.chat import Call, ChatRequest, Reply, Step
from offline_model.outcome import denied, failed
from offline_model.phrases import PHRASES
from offline_model.questions import understand
from offline_model.report import passed_on, report, said
from offline_model.script import Flow, Planned, next_call
from offline_model.summary import is_summary, spoiled, summarise
from offline_model.verdict import read_verdict

ACTIONS = ("bash", "edit", "write")
FORGETS = re.compile(r"\bforget\b[^\n]*\bnote\b|忘掉[^\n]*笔记", re.IGNORECASE)


def respond(request: ChatRequest, flows: Sequence[Flow], fault: str = "") -> Reply:
    """Return the reply to `request`. `fault` names one of the faults that spoil a reply."""
    if fault == "empty":
        return Reply("")
    if is_summary(request):
        return spoiled(fault, request) if fault.startswith("summary_") else Reply(summarise(request))
    steps = request.steps
    words = PHRASES[language_of(request)]
    if steps and denied(steps[-1]):
        return Reply(words["denied"].format(call=label_of(steps[-1].call)))
    stuck = bool(steps) and failed(steps[-1])
    planned = None if stuck else next_call(flows, request)
    if planned and planned.tool not in request.tools:
        return Reply(words["tool_missing"].format(tool=planned.tool))
    if planned:
        return Reply("", _calls(request, planned), "tool_calls")
    return Reply(_closing(request, steps, stuck))


def _closing(request: ChatRequest, steps: Sequence[Step], stuck: bool) -> str:
    if not steps and read_verdict(request.task):
        return cannot_mend(request)
    if any(step.call.name in ACTIONS for step in steps):
        return report(request, language_of(request))
    if not steps and "forget" in request.tools and FORGETS.search(request.question):
        return PHRASES[language_of(request)]["none_to_forget"]
    if stuck or (steps and steps[-1].call.name in ("remember", "forget")):
        return said(steps[-1], language_of(request))
    if steps and steps[-1].call.name == HANDS_ON and understand(request.question).asked == "look_up":
        return passed_on(steps, language_of(request))
    return answer(request)


def _calls(request: ChatRequest, planned: Planned) -> tuple[Call, ...]:
    """Return the calls with ids that depend on the request alone, so that no id is ever used twice."""
    digest = hashlib.sha256(b"\n".join(request.parts)).hexdigest()
    first = f"call_{digest[:16]}"
    ids = [first, *(f"{first}_{number}" for number in range(2, 2 + len(planned.beside)))]
    texts = (json.dumps(each, ensure_ascii=False) for each in (planned.arguments, *planned.beside))
    return tuple(Call(call_id, planned.tool, text) for call_id, text in zip(ids, texts, strict=True))
