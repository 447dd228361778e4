"""Gets a summary of cut messages from the model: what it reads, what is asked, when it is accepted.

The history is data: each message stands under a line that names its author, inside a tag that its text
cannot close. Knows nothing of where the cut is.
"""

import contextlib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.agent import Agent
from harness.compaction import Summary
from harness.context import Entry
from harness.events import SummaryCallEnded
from harness.messages import AssistantMessage, SummaryMessage, ToolResult, UserMessage
from harness.model.errors import ModelError
from harness.sizes import Usage

# What the summariser reads, in characters (lab 07 of the course): a message, a call's arguments, the whole.
MESSAGE_CHARS, ARGUMENTS_CHARS, HISTORY_CHARS = 4_000, 1_000, 24_000
# Room for the reply. A thinking model spends from it too; a reply cut by it is refused.
REPLY_TOKENS = 4_000
CUT_MARK = " […]"

_AUTHOR_LINE = re.compile(r"^\[(?=task \d)", re.MULTILINE)
_OWN_TAGS = re.compile(r"<(?=/?\s*(?:history|earlier_summary)\b)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？；])|\n")


class SummaryRefused(Exception):
    """No usable summary came. `reason` is a code, `detail` the provider's own words if there are any."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Wording:
    """What a strategy says to the summariser, in one language.

    instruction: the system text, with {limit} in characters. shorter: asks again, with {length} and {limit}.
    preface: one line that marks the summary as background. required: headings that must come back.
    focus: how a person's own wish is put, with {focus}. changed: the preface of a summary that a person changed.
    """

    instruction: str
    shorter: str
    preface: str
    required: tuple[str, ...]
    focus: str
    changed: str


def read_wording(path: Path, language: str) -> Wording:
    """Return the wording in `path`, a TOML file with one table a language; English where it has no other."""
    tables = tomllib.loads(path.read_text("utf-8"))
    table = tables.get(language, tables["en"])
    words = (table["instruction"], table["shorter"], table["preface"])
    return Wording(*words, tuple(table["required"]), table["focus"], table["changed"])


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, its start and its end, with a mark for what is missing.

    clip("a" * 5000, 4000) keeps 2,000 from each end around "[… 1000 characters left out …]".
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[len(text) - half :]}"


def render(entries: Sequence[Entry]) -> tuple[str, int]:
    """Return (what the summariser reads, characters left out of it); the newest part is never left out."""
    earlier = [entry.message.text for entry in entries if isinstance(entry.message, SummaryMessage)]
    rest = [entry for entry in entries if entry.category != "summary"]
    text = "\n\n".join(_render(entry) for entry in rest)
    left_out = sum(_left_out(entry) for entry in rest)
    if (missing := len(text) - HISTORY_CHARS) > 0:
        text = f"[… the first {missing} characters left out …]\n{text[missing:]}"
        left_out += missing
    before = "".join(f"<earlier_summary>\n{_quote(text)}\n</earlier_summary>\n\n" for text in earlier)
    return f"{before}<history>\n{text}\n</history>", left_out


def cut_at_sentence(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, cut where a sentence or line ends, with a visible mark."""
    if len(text) <= limit:
        return text
    room = limit - len(CUT_MARK)
    ends = [match.start() for match in _SENTENCE_END.finditer(text, 0, room)]
    return text[: ends[-1] if ends else room].rstrip() + CUT_MARK


async def write(agent: Agent, entries: Sequence[Entry], wording: Wording, limit: int, focus: str = "") -> Summary:
    """Ask the model for a summary of `entries` of at most `limit` characters. Raises SummaryRefused.

    focus: what a person wants kept above all. Too long: it is asked once to be shorter, and only then cut.
    """
    text, clipped = render(entries)
    instruction = wording.instruction.format(limit=limit)
    if focus:
        instruction += "\n\n" + wording.focus.format(focus=focus)
    messages = ({"role": "system", "content": instruction}, {"role": "user", "content": text})
    replies = [await _ask(agent, messages, attempt=1, clipped=clipped)]
    best, shortened = replies[0].text, ""
    if len(best) > limit:
        again = {"role": "user", "content": wording.shorter.format(length=len(best), limit=limit)}
        messages = (*messages, {"role": "assistant", "content": best}, again)
        # A second try that fails leaves the first, which is cut then.
        with contextlib.suppress(SummaryRefused):
            replies.append(await _ask(agent, messages, attempt=2, clipped=clipped))
        best = min((reply.text for reply in replies), key=len)
        shortened = "asked" if len(best) <= limit else "cut"
    best = cut_at_sentence(best, limit)
    if missing := [name for name in wording.required if not _has_heading(best, name)]:
        raise SummaryRefused("summary_headings", ", ".join(missing))
    seconds = sum(reply.seconds for reply in replies)
    calls = tuple(reply.call for reply in replies)
    return Summary(wording.preface, best, shortened, calls, _together(replies), seconds, focus=focus)


async def _ask(agent: Agent, messages: tuple[dict[str, str], ...], *, attempt: int, clipped: int) -> SummaryCallEnded:
    try:
        reply = await agent.ask(messages, attempt=attempt, clipped=clipped, max_tokens=REPLY_TOKENS)
    except ModelError as error:
        raise SummaryRefused("summary_failed", error.detail) from error
    if reply.finish == "tool_calls":
        raise SummaryRefused("summary_only_calls")
    if not reply.text:
        raise SummaryRefused("summary_empty")
    # Only a reply that ended by itself is whole: not one cut by length or a filter, or broken off.
    if reply.finish != "stop":
        raise SummaryRefused("summary_cut_off")
    return reply


def _render(entry: Entry) -> str:
    text = clip(entry.message.text, MESSAGE_CHARS)
    match entry.message:
        case UserMessage(author="user"):
            who = "user"
        case ToolResult(name=name, ok=ok):
            who = f"result of {name}" + ("" if ok else ", failed")
        case AssistantMessage(calls=calls):
            who = "assistant"
            asked = [f"calls {call.name} with {clip(call.arguments, ARGUMENTS_CHARS)}" for call in calls]
            text = "\n".join([text, *asked]).strip()
        case _:
            who = "harness"
    return f"[task {entry.task} · {who}]\n{_quote(text)}"


def _left_out(entry: Entry) -> int:
    calls = entry.message.calls if isinstance(entry.message, AssistantMessage) else ()
    over = [len(call.arguments) - ARGUMENTS_CHARS for call in calls]
    return sum(max(0, each) for each in [len(entry.message.text) - MESSAGE_CHARS, *over])


def _quote(text: str) -> str:
    # Neither the tags nor the lines that name an author can be forged by what a message says.
    return _AUTHOR_LINE.sub(r"\\[", _OWN_TAGS.sub("&lt;", text))


def _has_heading(text: str, name: str) -> bool:
    # With a mark before it, or alone on its line: a point that begins with the word is no heading.
    word = re.escape(name)
    marked = rf"^\s*(?:#+|\*\*|\d+[.)])\s*(?:\*\*)?{word}|^\s*{word}\s*[:：]?\s*$"
    return bool(re.search(marked, text, re.IGNORECASE | re.MULTILINE))


def _together(replies: list[SummaryCallEnded]) -> Usage:
    # A sum with an unknown part is unknown.
    def total(name: str) -> int | None:
        parts = [getattr(reply.usage, name) for reply in replies]
        return None if None in parts else sum(parts)

    return Usage(total("prompt"), total("completion"), total("cached"))
