"""Whether the folder's own files may change how the agent works, as the page asks for it and shows it. No HTML."""

from dataclasses import dataclass

from harness.replay import State
from harness.session_events import Told
from harness.trusting import TEXT_CHARS, digests_of, mark_of, question
from web.instructions import shortened
from web.plain import plain
from web.shown import Shown

# What the catalogue has words for, of the kinds that a part of the system prompt can have.
KNOWN = ("body", "prompt", "roles", "check")
# So many of the newest instructions are searched for a file as it was accepted.
LOOK_BACK = 50


@dataclass(frozen=True, slots=True)
class Want:
    """A file that counts only once a person accepted it. would: what it would do, as a code. text: all that it says.

    long: the text is no command but a file, and is unfolded to be read. changed: it counted before in this session, as
    another text.
    """

    name: str
    would: str
    text: str
    long: bool
    changed: bool


@dataclass(frozen=True, slots=True)
class TrustView:
    """What is known of the folder. wants: files that wait for an answer; more: how many are asked about after them.

    mark: stands for the files shown, and goes back with the answer. trusted: what was answered, None: nobody said.
    kept: whether an answer can be remembered.
    """

    folder: str
    wants: tuple[Want, ...]
    more: int
    mark: str
    trusted: bool | None
    kept: bool

    @property
    def asks(self) -> bool:
        """Whether the page asks now: also after a yes, for what that did not cover. After a no it does not."""
        return bool(self.wants) and self.trusted is not False


def trust_of(session: Shown) -> TrustView | None:
    """Return what the page shows of the folder's trust; None where nobody asked for it and nobody answered."""
    state = session.state
    sources = state.instructions.sources if state.instructions else ()
    found, asked = [told for told in sources if told.problem == "untrusted"], question(state)
    if state.started is None or not (found or state.trusted is not None):
        return None
    wants = [
        Want(
            shortened(told.name), told.kind if told.kind in KNOWN else "other", plain(told.wanted[:TEXT_CHARS]),
            told.kind != "check", bool(state.trusted) and _counted(state, told),
        )
        for told in asked
    ]  # fmt: skip
    started = state.started
    folder, more = shortened(started.source or started.workspace), len(found) - len(wants)
    return TrustView(folder, tuple(wants), more, mark_of(asked), state.trusted, bool(started.source))


def _counted(state: State, asked: Told) -> bool:
    """Whether a file of this name was part of earlier instructions, or was accepted when it was asked about."""
    made = (told for each in reversed(state.instructed[-LOOK_BACK:]) for told in each.event.sources)
    same = (told for told in made if (told.kind, told.name) == (asked.kind, asked.name))
    return any(told.start < told.end or not state.accepted.isdisjoint(digests_of([told])) for told in same)
