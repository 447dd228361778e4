"""What a result says of its call: denied, failed, passed, and the lines of a run that tell it."""

import re

from offline_model.calls import HANDS_ON
from offline_model.chat import Step

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
# What makes a run one of tests: its command, or what it prints.
TESTS = re.compile(r"\b(?:py|unit)?tests?\b|^Ran \d+ |\b\d+ passed", re.MULTILINE)
# Where a test's class lies, behind its name.
WHERE = re.compile(r" \([\w.]+\)")
SHORT = 600
MOST_LINES = 8


def denied(step: Step) -> bool:
    """Whether the result says that a person did not allow the call."""
    # Reading and searching ask nobody, and a file or a note may well speak of a denial.
    asks = step.call.name not in ("read", "search", "recall", HANDS_ON)
    return asks and len(step.result) <= SHORT and bool(DENIED.search(step.result.strip().split("\n", 1)[0]))


def failed(step: Step) -> bool:
    """Whether the result is a short word that the call did not work."""
    # What a command prints is for `report` to judge, and a note begins with its title, whatever that says.
    judged = step.call.name != "bash" and not (step.call.name == "recall" and step.result.startswith("# "))
    return judged and len(step.result) <= SHORT and bool(FAILED.match(step.result))


def telling(text: str) -> list[str]:
    """Return the lines with which a test run says how it went."""
    return [line.strip() for line in text.splitlines() if TELLING.match(line)][:MOST_LINES]


def short(value: object, most: int = 120) -> str:
    """Return `value` on one line of at most `most` characters."""
    line = " ".join(str(value if value is not None else "").split())
    return line if len(line) <= most else line[: most - 1] + "…"
