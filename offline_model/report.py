"""Reports on what was done in a task: the calls, and what the last run of a command says.

Everything is quoted from the calls and results of the request.
"""

import re
from collections.abc import Sequence

from offline_model.answer import joined, section
from offline_model.chat import Step
from offline_model.phrases import PHRASES, Language
from offline_model.sources import argument, arguments, label_of

DENIED = re.compile(
    r"\b(?:denied|declined|refused by|not allowed|did not allow|not approved|did not approve|no permission"
    r"|nobody (?:answered|allowed)|not answered|said no)\b|拒绝|未获?批准|没有批准|不允许|未允许",
    re.IGNORECASE,
)
FAILED = re.compile(
    r"^\W*(?:error|no such|there is no|not found|can(?:no|')t|could not|refused|invalid|failed|unknown"
    r"|the (?:path|arguments|tool|command|file)\b|this very call|`[^`]+` (?:is|does|has|can|was|needs)\b"
    r"|错误|找不到|没有这个|无法|不能)",
    re.IGNORECASE,
)
TELLING = re.compile(r"^(?:FAIL:|ERROR:|FAILED|OK\b|Ran \d+|\w*Error\b|E  |[=\s]*\d+ (?:passed|failed))")
PASS = re.compile(r"^(?:OK\b|[=\s]*\d+ passed)", re.MULTILINE)
FAIL = re.compile(r"^(?:FAILED|FAIL:|ERROR:)|\b\d+ failed\b|\w+Error\b|^Traceback", re.MULTILINE)
SHORT = 600
MOST_LINES = 8


def denied(step: Step) -> bool:
    """Whether the result says that a person did not allow the call."""
    # Reading and searching ask nobody, and a file may well speak of a denial.
    asks = step.call.name not in ("read", "search")
    return asks and len(step.result) <= SHORT and bool(DENIED.search(step.result.strip().split("\n", 1)[0]))


def failed(step: Step) -> bool:
    """Whether the result is a short word that the call did not work."""
    # What a command prints is for `report` to judge.
    return step.call.name != "bash" and len(step.result) <= SHORT and bool(FAILED.match(step.result))


def said(step: Step, language: Language) -> str:
    """Return an answer that passes on what a tool said."""
    lead = PHRASES[language]["tool_said"].format(label=label_of(step.call))
    return f"{lead}\n\n{_quoted(step.result.strip().splitlines()[:MOST_LINES])}"


def report(steps: Sequence[Step], language: Language) -> str:
    """Return what was done, and what the last run of a command says about it."""
    words = PHRASES[language]
    did = section(words["did"], [_line(step, language) for step in steps])
    runs = [step for step in steps if step.call.name == "bash"]
    if not runs or steps[-1].call.name != "bash":
        return joined([words["no_run"], did, said(steps[-1], language)])
    last = runs[-1].result
    passed = bool(PASS.search(last)) and not FAIL.search(last)
    verdict = words["passes"] if passed else words["fails"] if FAIL.search(last) else ""
    lines = _telling(last) or last.strip().splitlines()[-MOST_LINES:]
    return joined([verdict, did, f"### {words['last_run']}\n\n{_quoted(lines)}"])


def _line(step: Step, language: Language) -> str:
    call, values = step.call, arguments(step.call)
    if call.name == "edit":
        return f"`edit` `{argument(call)}`: `{_short(values.get('old'))}` → `{_short(values.get('new'))}`"
    if call.name == "bash":
        return f"`bash` `{argument(call)}`: {' · '.join(_telling(step.result)) or _short(step.result)}"
    count = PHRASES[language]["lines"].format(count=len(step.result.splitlines()))
    return f"`{call.name}` `{argument(call)}`: {count}"


def _telling(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if TELLING.match(line)][:MOST_LINES]


def _short(value: object) -> str:
    line = " ".join(str(value if value is not None else "").split())
    return line if len(line) <= 120 else line[:119] + "…"


def _quoted(lines: Sequence[str]) -> str:
    fence = "```"
    return "\n".join([fence, *(line.replace(fence, "'''") for line in lines), fence])
