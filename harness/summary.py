"""Gets a summary of cut messages from the model: what is asked, how often, when an answer is accepted.

Knows nothing of where the cut is.
"""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.accounting import window_of
from harness.agent import Agent
from harness.compaction import Summary
from harness.context import Entry
from harness.events import SummaryCallEnded
from harness.model.errors import ModelError
from harness.model.thinking import least_thinking
from harness.model.windows import DEFAULT_WINDOW
from harness.rendering import Reading, drop_rounds, render
from harness.sizes import Usage
from harness.wording import Wording

CUT_MARK = " […]"
# A request for a summary that is too long itself is sent again without its oldest rounds, so many times; the last time,
# or when a single round is left, only with as much of the end as fits for sure.
MOST_DROPS = 3

_Messages = tuple[dict[str, str], ...]

_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？；])|\n")


class SummaryRefused(Exception):
    """No usable summary came. `reason` is a code, `detail` the provider's own words if there are any."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Asked:
    """How a summary is asked for.

    limit: the most characters that it may have, 0 for no such limit. reply_tokens: room for the reply; a thinking
    model spends from it too, and a reply cut by it is refused. reading: how much of the history is read.
    """

    limit: int
    reply_tokens: int
    reading: Reading


def cut_at_sentence(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, cut where a sentence or line ends, with a visible mark."""
    if len(text) <= limit:
        return text
    room = limit - len(CUT_MARK)
    ends = [match.start() for match in _SENTENCE_END.finditer(text, 0, room)]
    return text[: ends[-1] if ends else room].rstrip() + CUT_MARK


async def write(agent: Agent, entries: Sequence[Entry], wording: Wording, asked: Asked, focus: str = "") -> Summary:
    """Ask the model for a summary of `entries`. Raises SummaryRefused.

    focus: what a person wants kept above all. Too long: it is asked once to be shorter, and only then cut.
    """
    again = wording.update and any(entry.category == "summary" for entry in entries)
    instruction = (wording.update if again else wording.instruction).format(limit=asked.limit)
    if focus:
        instruction += "\n\n" + wording.focus.format(focus=focus)
    messages, replies, clipped = await _first(agent, entries, instruction, asked)
    best, shortened, limit = replies[-1].text, "", asked.limit
    if limit and len(best) > limit:
        wish = {"role": "user", "content": wording.shorter.format(length=len(best), limit=limit)}
        messages = (*messages, {"role": "assistant", "content": best}, wish)
        # A second try that fails leaves the first, which is cut then.
        with contextlib.suppress(SummaryRefused, ModelError):
            replies.append(_accepted(await _ask(agent, messages, asked, attempt=len(replies) + 1, clipped=clipped)))
        best = min((best, replies[-1].text), key=len)
        shortened = "asked" if len(best) <= limit else "cut"
        best = cut_at_sentence(best, limit)
    if missing := [name for name in wording.required if not _has_heading(best, name)]:
        raise SummaryRefused("summary_headings", ", ".join(missing))
    seconds, calls = sum(reply.seconds for reply in replies), tuple(reply.call for reply in replies)
    return Summary(wording.preface, best, shortened, calls, _together(replies), seconds, focus=focus)


async def _first(
    agent: Agent, entries: Sequence[Entry], instruction: str, asked: Asked
) -> tuple[_Messages, list[SummaryCallEnded], int]:
    """Return the request that was answered, every reply, of which the last is usable, and the characters left out.

    Raises SummaryRefused.
    """
    replies: list[SummaryCallEnded] = []
    reading, dropped, thinking = asked.reading, 0, None
    for attempt in range(1, MOST_DROPS + 3):
        text, clipped = render(entries, reading, dropped)
        messages = ({"role": "system", "content": instruction}, {"role": "user", "content": text})
        try:
            reply = await _ask(agent, messages, asked, attempt=attempt, clipped=clipped, thinking=thinking)
        except ModelError as error:
            if error.kind != "overflow" or attempt > MOST_DROPS:
                reason = "summary_too_long" if error.kind == "overflow" else "summary_failed"
                raise SummaryRefused(reason, error.detail) from error
            following = drop_rounds(entries, dropped)
            if attempt == MOST_DROPS or following == dropped:
                reading = replace(reading, whole=_fits(agent))
            dropped = following
            continue
        replies.append(reply)
        least = least_thinking(agent.state.model) if reply.finish == "length" and thinking is None else None
        if least is None:
            _accepted(reply)
            return messages, replies, clipped
        thinking = least
    raise SummaryRefused("summary_cut_off")


def _fits(agent: Agent) -> int:
    """Return how many characters fit into half of the window at least: hardly a text has more than a token in each."""
    return (window_of(agent.state).tokens or DEFAULT_WINDOW) // 2


async def _ask(
    agent: Agent, messages: _Messages, asked: Asked, *, attempt: int, clipped: int, thinking: dict | None = None
) -> SummaryCallEnded:
    sent = {"attempt": attempt, "clipped": clipped, "extra": thinking or {}}
    return await agent.ask(messages, max_tokens=asked.reply_tokens, **sent)


def _accepted(reply: SummaryCallEnded) -> SummaryCallEnded:
    """Return the reply if it can be used. Raises SummaryRefused."""
    if reply.finish == "tool_calls":
        raise SummaryRefused("summary_only_calls")
    if not reply.text:
        raise SummaryRefused("summary_empty")
    # Only a reply that ended by itself is whole: not one cut by length or a filter, or broken off.
    if reply.finish != "stop":
        raise SummaryRefused("summary_cut_off")
    return reply


def _has_heading(text: str, name: str) -> bool:
    # With a mark before it, or alone on its line: a point that begins with the word is no heading.
    word = re.escape(name)
    marked = rf"^\s*(?:#+|\*\*|\d+[.)])\s*(?:\*\*)?{word}|^\s*{word}\s*[:：]?\s*$"
    return bool(re.search(marked, text, re.IGNORECASE | re.MULTILINE))


def _together(replies: list[SummaryCallEnded]) -> Usage:
    # A sum with an unknown part is unknown.
    def total(name: str) -> Any:
        parts = [getattr(reply.usage, name) for reply in replies]
        return None if None in parts else sum(parts)

    return Usage(total("prompt"), total("completion"), total("cached"), total("prompt_ms"))
