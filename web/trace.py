"""The tab "Trace": one task as a tree of what was worked on, when, and inside of what.

The tree is of the spans that also go to a trace viewer. Only the chosen task's events are folded, and only a part of a
long tree is listed.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from harness import events as e
from harness.recorded import Recorded
from harness.records import TaskRecord
from harness.tracing.span import Span
from harness.tracing.tracer import task_spans
from web.chart import percent
from web.child_view import ChildShown
from web.details import first_line, key_of, telling_line
from web.links import Links
from web.shown import Shown
from web.trace_tree import Counted, Node, Portion, portion, tree
from web.trace_words import named, said_of
from web.viewer import Viewer

# So many tasks beside the chosen one are offered at once.
NEAR = 4


@dataclass(frozen=True, slots=True)
class Line:
    """One line. what: a code for what it is, or of what took no time the event's class. name, says: in words.

    key: the argument of a tool's call that says most. begin: seconds since its root began. seconds: how long it took,
    None while it goes on. x, width: its bar in percent of its root's. fault: a code; result: what a tool that failed
    says. row, moment: addresses of its row and of the session as it was then. listed: it is one of the lines asked for,
    not only what holds them.
    """

    what: str
    name: Markup
    says: Markup
    key: str
    span: Span | None
    event: e.Event
    begin: float
    seconds: float | None
    x: str
    width: str
    counted: Counted
    waited: float
    fault: str
    result: str
    row: str
    moment: str
    listed: bool
    inside: tuple["Line", ...]


@dataclass(frozen=True, slots=True)
class TraceView:
    """The tree of one task. tasks: those to choose from, newest last; before, after: the tasks beside these, or 0.

    request: what was asked, in one line.
    """

    task: int
    request: str
    tasks: tuple[int, ...]
    before: int
    after: int
    roots: tuple[Line, ...]
    part: Portion


def trace_view(session: Shown, viewer: Viewer) -> TraceView | None:
    """Return the tree of the task that the viewer asks for, else of the newest; None before the first."""
    tasks, child = session.state.tasks, session if isinstance(session, ChildShown) else None
    if not tasks:
        return None
    whole, number = (child.whole, child.child.event.task) if child else (session, 0)
    task = number or (viewer.task if 0 < viewer.task <= len(tasks) else len(tasks))
    spans = task_spans(whole.id, whole.records, task)
    if child:
        spans = [span for span in spans if span.child == child.number]
    roots = tree(spans, _numbers(whole, task))
    part = portion(roots, viewer.lines)
    lines = _Lines(session, viewer, part)
    shown = tuple(lines.line(root, root) for root in roots if id(root) in part.shown)
    near = _near(tasks, task)
    asked = tasks[0 if child else task - 1].text
    return TraceView(
        task,
        first_line(asked),
        () if child else tuple(near),
        near[0] - 1,
        near[-1] + 1 if near[-1] < len(tasks) else 0,
        shown,
        part,
    )


def _near(tasks: Sequence[TaskRecord], task: int) -> range:
    last = min(len(tasks), max(task + NEAR, 2 * NEAR + 1))
    return range(max(1, last - 2 * NEAR), last + 1)


def _numbers(session: Shown, task: int) -> dict[int, int]:
    """Return the journal number of each event of a task, by the event's `id()`."""
    tasks = session.state.tasks
    last = tasks[task].seq if task < len(tasks) else len(session.records) + 1
    own = session.records[tasks[task - 1].seq - 1 : last - 1]
    return {id(_inner(each)): each.seq for each in own}


def _inner(recorded: Recorded) -> e.Event:
    return recorded.event.event if isinstance(recorded.event, e.ChildEvent) else recorded.event


class _Lines:
    """Makes the lines of one tree, as one viewer sees them."""

    def __init__(self, session: Shown, viewer: Viewer, part: Portion) -> None:
        self._session, self._viewer, self._part = session, viewer, part
        self._whole = session.whole if isinstance(session, ChildShown) else session
        self._now = self._whole.records[-1].time
        self._links: dict[int, Links] = {}

    def line(self, node: Node, root: Node) -> Line:
        """Return a node as a line, with what it holds as far as that is shown."""
        span = node.span
        whole = max((root.span.end if root.span else None) or self._now, root.begin) - root.begin
        begin = max(0.0, node.begin - root.begin)
        running = span is not None and span.end is None
        took = max(0.0, self._now - node.begin) if running else node.seconds or 0.0
        x = min(100.0, 100 * begin / whole) if whole else 0.0
        width = min(100.0 - x, 100 * took / whole) if whole else 100.0
        return Line(
            what=node.what,
            name=named(node, self._viewer.words),
            says=said_of(node, self._viewer.words),
            key=key_of(node.event.arguments) if node.what == "tool" else "",
            span=span,
            event=node.event,
            begin=begin,
            seconds=node.seconds,
            x=percent(x),
            width=percent(width),
            counted=node.counted,
            waited=node.waited,
            fault=span.fault if span else "",
            result=_result(span) if span else "",
            row=self._row(node),
            moment=self._viewer.query(at=str(node.seq), lines="") if node.seq else "",
            listed=id(node) in self._part.listed,
            inside=tuple(self.line(each, root) for each in node.inside if id(each) in self._part.shown),
        )

    def _row(self, node: Node) -> str:
        """Return the address of the row: on this page, or on the page of the sub-agent whose row it is."""
        # A compaction's row comes with its end; all others begin with what they are about.
        seq = node.last if node.what == "compaction" else node.seq
        number = node.child
        if not number:
            return self._to(0, seq)
        if number not in self._whole.state.children:
            return ""
        seqs = self._whole.state.children[number].seqs
        place = bisect_left(seqs, seq)
        # A sub-agent begins with an event of its session, which has the row of the call.
        if place == len(seqs) or seqs[place] != seq:
            return self._to(0, seq)
        return self._to(number, place + 1)

    def _to(self, number: int, seq: int) -> str:
        here = self._session.number if isinstance(self._session, ChildShown) else 0
        shown = ChildShown(self._whole, self._whole.state.children[number]) if number else self._whole
        # What has no row of its own, such as the beginning of the session, is no place to go to.
        if not 0 < seq <= shown.committed:
            return ""
        viewer = self._viewer if here == number else replace(self._viewer, view="full")
        if number not in self._links:
            self._links[number] = Links(shown, viewer)
        address = self._links[number].to(seq)
        if here == number or address.startswith("/"):
            return address
        return f"/s/{shown.id}{viewer.query(lines='', task='')}{address}"


def _result(span: Span) -> str:
    return telling_line(span.ended.text) if isinstance(span.ended, e.ToolEnded) and not span.ended.ok else ""
