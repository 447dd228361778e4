"""The spans of a task as a tree, with what took no time in its place between them. Knows no words and no addresses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness import events as e
from harness.sizes import Usage
from harness.tracing.span import Span
from web.rows import is_invisible

# So many lines of a tree are shown at once, and what they stand inside of.
LISTED = 120


@dataclass(frozen=True, slots=True)
class Counted:
    """What model calls came to: how many, of how many tokens were reported, and those; None: nobody said."""

    calls: int = 0
    reported: int = 0
    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None

    def __add__(self, other: "Counted") -> "Counted":
        return Counted(
            self.calls + other.calls,
            self.reported + other.reported,
            _sum(self.prompt, other.prompt),
            _sum(self.completion, other.completion),
            _sum(self.cached, other.cached),
        )


@dataclass(slots=True)
class Node:
    """A span, or with none something that took no time.

    seq: the journal number of the event that it began with; last: of the newest of its own. begin: seconds since 1970.
    child: the number of its sub-agent, or 0. counted, waited: of all calls in it, and the seconds that a person was
    waited for.
    """

    seq: int
    begin: float
    event: e.Event
    span: Span | None = None
    last: int = 0
    child: int = 0
    counted: Counted = Counted()
    waited: float = 0
    inside: list["Node"] = field(default_factory=list)

    @property
    def what(self) -> str:
        """Return a code for what it is: of what took no time the event's class."""
        if self.span is None:
            return type(self.event).__name__
        match self.span.kind:
            case "AGENT":
                return "child" if self.child else "resumed" if isinstance(self.event, e.TaskResumed) else "task"
            case "CHAIN":
                # The first word of its name says which one it is.
                return self.span.name.partition(" ")[0]
            case "LLM":
                return "summary_call" if isinstance(self.event, e.SummaryCallStarted) else "call"
            case "TOOL":
                return "tool"
            case "EVALUATOR":
                return "check"

    @property
    def number(self) -> int:
        """Return the number at the end of the span's name, of a check that of the attempt; 0 for none."""
        if isinstance(self.event, e.CheckStarted):
            return self.event.attempt
        last = self.span.name.rpartition(" ")[2] if self.span else ""
        return int(last) if last.isascii() and last.isdecimal() else 0

    @property
    def fault(self) -> str:
        """Return the code of what went wrong, or nothing."""
        return self.span.fault if self.span else ""

    @property
    def seconds(self) -> float | None:
        """Return how long it took, None while it goes on."""
        if self.span is None or self.span.end is None:
            return None
        # A clock may have been set back, and a file may say anything.
        return max(0.0, self.span.end - self.span.begin)


def tree(spans: Sequence[Span], numbers: Mapping[int, int]) -> list[Node]:
    """Return the roots of a task's spans, each with what it holds in order.

    numbers: the journal number of each of the task's events, by the event's `id()`.
    """
    nodes = {span.id: _node(span, numbers) for span in spans}
    roots = []
    for span in spans:
        above = nodes.get(span.parent)
        (above.inside if above else roots).append(nodes[span.id])
        marks = (Node(numbers.get(id(event), 0), time, event, child=span.child) for time, event in span.happened)
        nodes[span.id].inside += [mark for mark in marks if not is_invisible(mark.event)]
    for node in nodes.values():
        node.inside.sort(key=lambda each: each.seq)
    for root in roots:
        _add_up(root)
    return roots


def walk(nodes: Iterable[Node], above: tuple[Node, ...] = ()) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Yield every node as it is read, line by line, with those that it stands inside of."""
    for node in nodes:
        yield node, above
        yield from walk(node.inside, (*above, node))


@dataclass(frozen=True, slots=True)
class Portion:
    """The part of a tree that is listed: its lines `first` to `last` of `count`, from 1, and what holds them.

    listed, shown: the `id()` of these nodes, without and with what holds them. before, after: `upto` for the parts
    beside it; None where there is none.
    """

    first: int
    last: int
    count: int
    listed: frozenset[int]
    shown: frozenset[int]
    before: int | None
    after: int | None


def portion(roots: Sequence[Node], upto: int = 0) -> Portion:
    """Return the lines that end with number `upto`; 0 is the newest one."""
    lines = list(walk(roots))
    last = min(upto, len(lines)) or len(lines)
    begin = max(0, last - LISTED)
    listed = frozenset(id(node) for node, _ in lines[begin:last])
    shown = listed | {id(each) for _, above in lines[begin:last] for each in above}
    after = last + LISTED
    return Portion(
        begin + 1,
        last,
        len(lines),
        listed,
        shown,
        begin or None,
        None if last == len(lines) else 0 if after >= len(lines) else after,
    )


def _node(span: Span, numbers: Mapping[int, int]) -> Node:
    last = numbers.get(id(span.ended), 0) if span.ended else 0
    asks = span.end is not None and isinstance(span.begun, e.ApprovalRequested | e.SummaryProposed)
    waited = max(0.0, (span.end or 0) - span.begin) if asks else 0
    return Node(span.seq, span.begin, span.begun, span, last or span.seq, span.child, _counted(span), waited)


def _counted(span: Span) -> Counted:
    if span.kind != "LLM":
        return Counted()
    usage = span.ended.usage if isinstance(span.ended, e.ModelCallEnded | e.SummaryCallEnded) else Usage()
    return Counted(1, int(usage.prompt is not None), usage.prompt, usage.completion, usage.cached)


def _add_up(node: Node) -> None:
    for each in node.inside:
        _add_up(each)
        node.counted += each.counted
        node.waited += each.waited


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other
