"""Which tool results give way to a short text in the next request, and to which. Pure: it writes no file.

Three steps, as in the article behind lab 09: a result that is too large by itself; the largest of several that are too
large together; and old ones, in batches, because each batch changes the start of the request and voids a cache.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from harness.context import Entry
from harness.messages import AssistantMessage, ToolCall, ToolResult
from harness.preview import shortened, stale_note, whole_note
from harness.read_back import read_back
from harness.replay import State
from harness.result_events import Decision, Verdict
from harness.sizes import Size, size_of
from harness.spills import file_name

# So many of the newest results are looked at for old ones; a turn must not cost more the longer a session is.
LOOK_BACK = 200
# Of a single large result (lab 10) so many of its characters stay in the request.
PREVIEW_SHARE = 4


@dataclass(frozen=True, slots=True)
class Budgets:
    """The limits, in characters. stale_turns: replies of the model after which a result is old; a batch of old ones is
    replaced once `stale_batch` characters can be freed together. 0 switches a step off (not a preview or a batch).
    """

    result_limit: int
    preview: int
    turn_limit: int
    stale_turns: int
    stale_preview: int
    stale_batch: int

    @classmethod
    def of(cls, settings: Mapping[str, int]) -> "Budgets":
        """Return the budgets of lab 09, of lab 10, or of both: whichever decides first does so for the other."""
        limits = cls(*(settings.get(name, 0) for name in cls.__slots__))
        event = settings.get("event_chars", 0)
        larger = not 0 < limits.result_limit <= event
        return replace(limits, result_limit=event, preview=event // PREVIEW_SHARE) if event and larger else limits


@dataclass(frozen=True, slots=True)
class Given:
    """A result in the context: its call, its number among those of `child` (0: no sub-agent), replies since then."""

    call: ToolCall | None
    entry: Entry
    number: int
    age: int
    child: int

    @property
    def message(self) -> ToolResult:
        """Return the result as it came."""
        assert isinstance(self.entry.message, ToolResult), "only results are decided about"
        return self.entry.message


def decide(state: State, budgets: Budgets) -> tuple[Decision, ...]:
    """Return what to decide before the next turn: about each new result, and about old ones in a batch."""
    numbers = range(len(state.results), 0, -1)
    new = takewhile(lambda each: each[0] not in state.decisions, zip(reversed(state.results), numbers, strict=True))
    turns = given(state, dict(new))
    fresh = [decision for turn in turns for decision in _of_turn(state, turn, budgets).values()]
    return (*fresh, *(_stale_batch(state, budgets) if budgets.stale_turns else ()))


def decide_anew(state: State, budgets: Budgets) -> tuple[Decision, ...]:
    """Return the decisions about all results that differ from those in force, as if none had ever been made."""
    wanted: dict[str, Decision] = {}
    for turn in given(state, {call_id: number for number, call_id in enumerate(state.results, 1)}):
        made = _of_turn(state, turn, budgets)
        wanted |= {each.message.call_id: _aged(each, made[each.message.call_id], budgets) for each in turn}
    nothing = Decision("", "kept", 0)
    # A result that stays as it came needs no word for it.
    return tuple(
        each
        for each in wanted.values()
        if each != (before := state.decisions.get(each.call_id, nothing)) and (each.text or before.text)
    )


def freed_by(state: State, decisions: Sequence[Decision]) -> Size:
    """Return by how much the next request shrinks with `decisions`; below zero where it grows."""
    entries = [(state.results[each.call_id], each) for each in decisions]
    known = state.decisions
    changed = [(a, each) for a, each in entries if each.text or (each.call_id in known and known[each.call_id].text)]
    before = size_of(state.projected(entry) for entry, _ in changed)
    return before - size_of(state.projected(entry, each) for entry, each in changed)


def given(state: State, numbers: Mapping[str, int]) -> list[list[Given]]:
    """Return the results of these calls that stand in the context, a list for each turn, the oldest first.

    numbers: by call id, the result's number in the session. Walks back no further than it must.
    """
    turns: list[list[Given]] = []
    ages: dict[str, int] = {}
    age, missing, results, own = 0, len(numbers), state.results, state.number
    for entry in reversed(state.context.entries) if numbers else ():
        message = entry.message
        if isinstance(message, ToolResult):
            if message.call_id in numbers:
                ages[message.call_id] = age
                missing -= 1
        elif isinstance(message, AssistantMessage):
            asked = [call for call in message.calls if call.id in ages] if ages else ()
            if asked:
                turns.append([Given(x, results[x.id], numbers[x.id], ages.pop(x.id), own) for x in asked])
            age += 1
            if not missing and not ages:
                break
    # A result without its call is a turn of its own.
    alone = [[Given(None, results[call_id], numbers[call_id], age, own)] for call_id, age in reversed(ages.items())]
    return alone + turns[::-1]


def _of_turn(state: State, turn: Sequence[Given], budgets: Budgets) -> dict[str, Decision]:
    """Return the decision about each result of one turn while it is new, by call id."""
    made = {each.message.call_id: _kept(state, each) for each in turn}
    lengths = [decision.chars for decision in made.values()]
    if not (0 < budgets.result_limit < max(lengths) or 0 < budgets.turn_limit < sum(lengths)):
        return made

    def spill(each: Given, verdict: Verdict) -> None:
        decision = _spilled(each, verdict, budgets)
        if not made[decision.call_id].file and len(decision.text) < decision.chars:
            made[decision.call_id] = decision

    for each in turn:
        if 0 < budgets.result_limit < len(each.message.text):
            spill(each, "single")
    for each in sorted(turn, key=lambda each: -len(each.message.text)):
        total = sum(len(decision.text) or decision.chars for decision in made.values())
        if 0 < budgets.turn_limit < total:
            spill(each, "together")
    return made


def _kept(state: State, each: Given) -> Decision:
    # What was read back from its file stays: a preview of a preview would lead nowhere.
    message, newest = each.message, reversed(state.decisions.values())
    files = ((made.file, state.results[made.call_id].message.text) for made in newest if made.text and made.file)
    return Decision(message.call_id, "kept", len(message.text), "", read_back(each.call, message.text, files))


def _spilled(each: Given, verdict: Verdict, budgets: Budgets) -> Decision:
    message, file = each.message, file_name(each.number, each.message.name, each.child)
    text = shortened(message.text, budgets.preview, whole_note(message.name, file))
    return Decision(message.call_id, verdict, len(message.text), text, file)


def _stale_batch(state: State, budgets: Budgets) -> tuple[Decision, ...]:
    """Return the decisions about all results that are old by now, if together they free enough; else nothing."""
    oldest_seen = _reply_before(state, budgets.stale_turns) if budgets.stale_turns else 0
    first = state.in_force[-1].event.cut if state.in_force else 0
    old: list[str] = []
    room = 0
    for call_id, entry in islice(reversed(state.results.items()), LOOK_BACK) if oldest_seen else ():
        decision = state.decisions.get(call_id)
        if entry.seq < first or (decision and decision.verdict == "stale"):
            # What is older was looked at with an earlier batch, or has left the context.
            break
        # One with a file has a preview already, or was read back.
        if entry.seq > oldest_seen or not decision or decision.file:
            continue
        if (saves := decision.chars - budgets.stale_preview) > 0:
            old.append(call_id)
            room += saves
    if not old or room < budgets.stale_batch:
        return ()
    turns = given(state, dict.fromkeys(old, 0))
    aged = [_aged(each, state.decisions[each.message.call_id], budgets) for turn in turns for each in turn]
    batch = tuple(each for each in aged if each.text)
    return batch if sum(each.chars - len(each.text) for each in batch) >= budgets.stale_batch else ()


def _reply_before(state: State, turns: int) -> int:
    """Return the journal number of the reply before which a result is older than `turns` replies; 0 for none."""
    replies = (entry.seq for entry in reversed(state.context.entries) if isinstance(entry.message, AssistantMessage))
    return next(islice(replies, turns, None), 0)


def _aged(each: Given, made: Decision, budgets: Budgets) -> Decision:
    """Return what is decided about a result now that it may be old; one that was read back stays."""
    read_back = made.verdict == "kept" and made.file
    if not 0 < budgets.stale_turns < each.age or read_back:
        return made
    note = whole_note(each.message.name, made.file) if made.file else stale_note(each.message.name, each.call)
    text = shortened(each.message.text, budgets.stale_preview, note)
    if 2 * len(text) > len(made.text or each.message.text):
        # To lose the rest of a short result would be a bad bargain.
        return made
    return replace(made, verdict="stale", text=text)
