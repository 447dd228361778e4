"""What was done: the calls of a task, written down so short that thirty of them fit on a line, and read back.

    read day-01.csv … day-17.csv, notes.md        one line a tool; three or more in a row become a run
    bash `python3 -m unittest` ×2: OK             one line each, with what came of it
    earlier: read README.md                       of a task that is finished

Knows nothing of where such lines stand.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from offline_model.calls import NOTE_TOOLS, argument, arguments
from offline_model.chat import Call, Step
from offline_model.outcome import WHERE, denied, failed, short, telling

# Their results say nothing of how it went, so their calls share a line.
LISTED = ("read", "search", "write")
TOOLS = (*LISTED, "edit", "bash")
EARLIER = {"en": "earlier: ", "zh": "先前："}
FAILED = {"en": "failed: ", "zh": "失败："}
# No line is longer, so that one that does not fit takes little with it.
LONGEST = 240
LONGEST_ARGUMENT = 120
SHORTEST_RUN = 3
# A run in a text from elsewhere may name any numbers.
LONGEST_RUN = 1_000
RUN = " … "
PART = r"(?:`[^`\n]+`|[^\s`,:…]+(?: … [^\s`,:…]+)?)"
LINE = re.compile(
    rf"^\s*(?:[-*]\s+)?(?P<earlier>earlier: |先前：)?(?P<tool>{'|'.join(TOOLS)}|[a-z]+_\w+)"
    rf" (?P<parts>{PART}(?:, {PART})*)(?: ×(?P<times>\d{{1,3}}))?(?:: (?P<outcome>.*))?$"
)
SIMPLE = re.compile(r"[^\s`,:…]+")
NUMBERED = re.compile(r"(.*?)(\d{1,6})(\D*)")


@dataclass(frozen=True, slots=True)
class Deed:
    """One call that was made. `running`: for the task that is not finished. `ok`: it worked."""

    tool: str
    what: str
    outcome: str = ""
    running: bool = True
    ok: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """Return what tells whether two calls are the same."""
        return self.tool, self.what


def deed_of(call: Call, result: str = "", *, ok: bool = True, running: bool = True) -> Deed | None:
    """Return the deed of a call and its result; None when the arguments can't be read, or where it is about notes."""
    what = short(argument(call).replace("`", "'"), LONGEST_ARGUMENT)
    step = Step(call, result)
    ok = ok and not denied(step) and not failed(step)
    return Deed(call.name, what, _outcome(step, ok), running, ok) if what and call.name not in NOTE_TOOLS else None


def edit_line(call: Call) -> str:
    """Return what an edit changed: edit_line(call) -> "`edit` `a.py`: `x = 1` → `x = 2`"."""
    values = arguments(call)
    return f"`edit` `{argument(call)}`: `{short(values.get('old'))}` → `{short(values.get('new'))}`"


def read_deeds(text: str) -> list[Deed]:
    """Return the deeds that stand in `text`; those that failed are not among them."""
    return [deed for line in text.splitlines() if (match := LINE.match(line)) for deed in _read(match)]


def is_deed(line: str) -> bool:
    """Whether the line is one that `write_deeds` writes, be it of a call that worked or of one that failed."""
    line = re.sub(r"^\s*(?:[-*]\s+)?(?:failed: |失败：)?", "", line)
    return bool(LINE.match(line))


def write_deeds(deeds: Iterable[Deed], language: str) -> list[str]:
    """Return the lines for `deeds`, those of the running task first."""
    known = list(deeds)
    lines = []
    for running in (True, False):
        before = "" if running else EARLIER[language]
        chosen = [deed for deed in known if deed.running == running]
        lines += [before + line for line in _listed(chosen)]
        one_each = Counter(replace(deed, running=True) for deed in chosen if deed.tool not in LISTED)
        lines += [before + _single(deed, times) for deed, times in one_each.items()]
    return lines


def on_files(line: str) -> bool:
    """Whether a line of `write_deeds` tells of reading or changing files."""
    for before in EARLIER.values():
        line = line.removeprefix(before)
    return line.partition(" ")[0] in (*LISTED, "edit")


def write_failures(deeds: Iterable[Deed], language: str) -> list[str]:
    """Return a line for each deed that failed."""
    return [FAILED[language] + _single(deed, 1) for deed in dict.fromkeys(deeds)]


def _outcome(step: Step, ok: bool) -> str:
    values = arguments(step.call)
    if not ok:
        return short(step.result.strip().split("\n", 1)[0])
    if step.call.name == "edit":
        return f"`{short(values.get('old'), 60)}` → `{short(values.get('new'), 60)}`"
    if step.call.name == "bash":
        # How long a run took is of no use to anybody later, nor where a test's class lies.
        told = [WHERE.sub("", line) for line in telling(step.result) if not line.startswith("Ran ")]
        return short(" · ".join(told) or step.result.strip().rsplit("\n", 1)[-1])
    return ""


def _single(deed: Deed, times: int) -> str:
    more = f" ×{times}" if times > 1 else ""
    return f"{deed.tool} {_named(deed.what)}{more}" + (f": {deed.outcome}" if deed.outcome else "")


def _listed(deeds: Sequence[Deed]) -> Iterator[str]:
    for tool in LISTED:
        names = list(dict.fromkeys(deed.what for deed in deeds if deed.tool == tool))
        line = ""
        for part in runs(names):
            if line and len(line) + len(part) > LONGEST:
                yield line
                line = ""
            line = f"{line}, {part}" if line else f"{tool} {part}"
        if line:
            yield line


def runs(names: Sequence[str]) -> list[str]:
    """Return names, numbered ones as runs: runs(["a-1", "b", "a-2", "a-3"]) -> ["a-1 … a-3", "b"]."""
    families: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        match = NUMBERED.fullmatch(name) if SIMPLE.fullmatch(name) else None
        families.setdefault(("", match[1], match[3]) if match else (name,), []).append(name)
    parts: list[str] = []
    for family, members in families.items():
        if len(family) > 1:
            members.sort(key=lambda name: (int(_number(name)), name))
        while members:
            end = next((i for i, name in enumerate(members[1:], 1) if name != _after(members[i - 1])), len(members))
            end = end if end >= SHORTEST_RUN else 1
            parts.append(f"{members[0]}{RUN}{members[end - 1]}" if end > 1 else _named(members[0]))
            members = members[end:]
    return parts


def _read(match: re.Match[str]) -> Iterator[Deed]:
    made = Deed(match["tool"], "", match["outcome"] or "", not match["earlier"])
    for part in re.findall(PART, match["parts"]):
        first, _, last = (part, "", "") if part.startswith("`") else part.partition(RUN)
        first = first.strip("`")
        names = [first]
        while last and names[-1] != last and len(names) < LONGEST_RUN and NUMBERED.fullmatch(names[-1]):
            names.append(_after(names[-1]))
        # A run that never meets its end is no run of ours.
        for name in names if not last or names[-1] == last else [first, last]:
            yield from [replace(made, what=name)] * min(int(match["times"] or 1), 99)


def _named(what: str) -> str:
    return what if SIMPLE.fullmatch(what) else f"`{what}`"


def _number(name: str) -> str:
    match = NUMBERED.fullmatch(name)
    return match[2] if match else "0"


def _after(name: str) -> str:
    """Return the name with the next number, of the same width: _after("day-09.csv") -> "day-10.csv"."""
    match = NUMBERED.fullmatch(name)
    if not match:
        return name
    return f"{match[1]}{int(match[2]) + 1:0{len(match[2])}}{match[3]}"
