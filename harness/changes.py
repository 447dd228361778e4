"""The history and the context of a session, and everything that changed the context: cuts, decisions, resumes.

Nothing is erased: the context as it was at any journal number can be had again. `replay` folds events into this.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness import events as e
from harness.context import Context, Entry, make_entry
from harness.messages import Message, SummaryMessage, ToolResult
from harness.records import Compaction
from harness.request import Wire, to_wire
from harness.result_events import Decision
from harness.sizes import Size


@dataclass(frozen=True, slots=True)
class Changed:
    """What the change of journal number `seq` put something else in the place of: all entries, or single ones."""

    seq: int
    entries: tuple[Entry, ...]
    single: bool


@dataclass(frozen=True, slots=True)
class Resumed:
    """The newest resume: its journal number and its checkpoint.

    tries: how many in a row no person asked for, with no new checkpoint between them.
    """

    seq: int = 0
    number: int = 0
    tries: int = 0


class Changes:
    """The messages of a session and what became of them. measure, known: as for `State`."""

    def __init__(self, measure: Callable[[Wire], Size], known: Mapping[int, Entry]) -> None:
        self.history: list[Entry] = []
        self.context = Context()
        self.compactions: list[Compaction] = []
        self.checkpoints: list[tuple[int, e.CheckpointSaved]] = []
        self.resumed = Resumed()
        # What resumes have left behind, as ranges of journal numbers; and of each checkpoint what that was there.
        self.left: tuple[tuple[int, int], ...] = ()
        self._left_at: dict[int, tuple[tuple[int, int], ...]] = {}
        self.decisions: dict[str, Decision] = {}
        self.results: dict[str, Entry] = {}  # of each call its result as it came
        self.cut_at = 0  # the journal number of the newest compaction or undoing in force: older usage is void
        self._steps: list[Changed] = []
        self._measure, self._known = measure, known
        self._tried: Entry | None = None

    @property
    def in_force(self) -> list[Compaction]:
        """Return the compactions that were not undone; the newest one's summary stands in the context."""
        return [each for each in self.compactions if not each.undone]

    @property
    def changes(self) -> int:
        """Return how often something else was put in the place of entries."""
        return len(self._steps)

    def entries_at(self, seq: int) -> list[Entry]:
        """Return the context's entries as they were just before journal number `seq`."""
        entries: Sequence[Entry] = self.context.entries
        for step in reversed(self._steps):
            if step.seq < seq:
                break
            old = {entry.seq: entry for entry in step.entries}
            entries = [old.get(entry.seq, entry) for entry in entries] if step.single else step.entries
        return [entry for entry in entries if entry.seq < seq]

    def add(self, seq: int, task: int, message: Message) -> None:
        """Add a message to the history and to the context."""
        entry = self._entry(seq, task, message)
        self.history.append(entry)
        self.context.append(entry)
        if isinstance(message, ToolResult):
            self.results[message.call_id] = entry

    def try_on(self, task: int, summary: SummaryMessage) -> Entry:
        """Return the entry that `summary` would be, to be judged; if it comes in it is not measured a second time."""
        self._tried = make_entry(0, task, summary, self._measure)
        return self._tried

    def compact(self, seq: int, event: e.ContextCompacted) -> None:
        """Put a summary in the place of what the event removes; what is pinned stays, behind the summary."""
        message, tried = SummaryMessage(event.preface, event.summary, event.beside), self._tried
        known = tried and tried.message == message
        summary = replace(tried, seq=seq, task=event.task) if known else self._entry(seq, event.task, message)
        removed, stays = self.context.parted(event.removed, event.pinned)
        self._put(seq, [summary, *stays])
        self.compactions.append(Compaction(seq, event, tuple(removed), summary))
        self.cut_at = seq

    def undo(self, seq: int, number: int) -> None:
        """Put back what compaction `number`, the newest in force, removed; what came since stays behind it."""
        place = next(i for i, each in enumerate(self.compactions) if each.event.number == number)
        made = self.compactions[place]
        self._put(seq, self.entries_without(made))
        self.compactions[place] = replace(made, undone=seq)
        self.cut_at = seq

    def entries_without(self, made: Compaction) -> list[Entry]:
        """Return what the context holds once `made`, the newest compaction in force, is taken back."""
        now = {entry.seq: entry for entry in self.context.entries if entry.seq != made.seq}
        # What was decided meanwhile, in a context that a resume has left, holds for ever too.
        before = [now.pop(entry.seq, None) or self._as_decided(entry) for entry in self.entries_at(made.seq)]
        return [*before, *now.values()]

    def decide(self, seq: int, event: e.ResultsDecided) -> None:
        """Let what was decided about results stand in the requests from here on."""
        swapped = {}
        for decision in event.decisions:
            known = self.decisions.get(decision.call_id)
            self.decisions[decision.call_id] = decision
            if decision.text or (known and known.text):
                entry = self.projected(self.results[decision.call_id])
                swapped[entry.seq] = entry
        if swapped:
            old = tuple(entry for entry in self.context.entries if entry.seq in swapped)
            self._steps.append(Changed(seq, old, single=True))
            self.context.swap(swapped)

    def projected(self, entry: Entry, decision: Decision | None = None) -> Entry:
        """Return a message as it is sent: of a result the text that was decided; `message` stays as it came.

        decision: one to go by in place of the one in force.
        """
        message = entry.message
        if decision is None and isinstance(message, ToolResult):
            decision = self.decisions.get(message.call_id)
        if not decision or not decision.text:
            return entry
        wire = to_wire(replace(message, text=decision.text))
        return replace(entry, wire=wire, size=self._measure(wire))

    def save(self, seq: int, event: e.CheckpointSaved) -> None:
        """Take note of a checkpoint."""
        self.checkpoints.append((seq, event))
        self._left_at[event.number] = self.left

    def is_left(self, seq: int) -> bool:
        """Whether a resume went back to before journal number `seq`, and none has come back to it since."""
        return any(first < seq < last for first, last in self.left)

    def resume(self, seq: int, number: int, *, by_itself: bool = False) -> None:
        """Let the context be what it was at checkpoint `number`, its summary as a system message.

        by_itself: no person asked for it.
        """
        at = next(at for at, saved in self.checkpoints if saved.number == number)
        # A decision is kept for ever, also one that came after the checkpoint.
        self._put(seq, [self._as_sent_now(entry) for entry in self.entries_at(at)])
        self._let_stand(seq)
        self.left = (*self._left_at[number], (at, seq))
        self.resumed = Resumed(seq, number, self.resumed.tries + 1 if by_itself else 0)

    def _let_stand(self, seq: int) -> None:
        """Let those compactions be in force whose summary stands in the context, or in one that does; no other is.

        seq: where the others were taken back.
        """
        wanted = _summary_in(self.context.entries)
        for place in range(len(self.compactions) - 1, -1, -1):
            made = self.compactions[place]
            if made.seq == wanted:
                self.compactions[place], wanted = replace(made, undone=0), _summary_in(made.removed)
            elif not made.undone:
                self.compactions[place] = replace(made, undone=seq)

    def _as_sent_now(self, entry: Entry) -> Entry:
        """Return an entry of an earlier context as a resume sends it."""
        if isinstance(entry.message, SummaryMessage):
            return make_entry(entry.seq, entry.task, replace(entry.message, role="system"), self._measure)
        return self._as_decided(entry)

    def _as_decided(self, entry: Entry) -> Entry:
        """Return an entry of an earlier context with what is decided about it by now."""
        message = entry.message
        return self.projected(self.results[message.call_id]) if isinstance(message, ToolResult) else entry

    def _put(self, seq: int, entries: list[Entry]) -> None:
        before = tuple(self.context.entries)
        self.context.put(entries)
        self._steps.append(Changed(seq, before, single=False))

    def _entry(self, seq: int, task: int, message: Message) -> Entry:
        return self._known.get(seq) or make_entry(seq, task, message, self._measure)


def _summary_in(entries: Sequence[Entry]) -> int:
    """Return the journal number of the summary among `entries`, or 0."""
    return next((entry.seq for entry in entries if isinstance(entry.message, SummaryMessage)), 0)
