"""A session as one HTML file that stands alone: what its page shows, made of the page's own templates.

It asks no network for anything, needs no script, and has every secret masked. Blocking: to be called in a thread.
"""

import base64
import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from markupsafe import Markup

from harness.context import Entry
from harness.exporting.masked import masked
from harness.masking import mask
from harness.problems import Problem
from harness.replay import State, fold
from harness.sizes import Size
from web.assets import STATIC
from web.feed import render_earlier
from web.guide import in_language
from web.lost import FEW
from web.moment import Moment
from web.panel import panel_of
from web.parts import PAGE, part_before
from web.standing import alone, linked
from web.viewer import Viewer

STYLES = ("tokens", "base", "layout", "feed", "panel", "handout")
# Characters of one text, and of all rows together; compactions whose facts are listed; characters of a task as a name.
TEXT_CHARS, ROWS_CHARS, MOST_LOST, NAME_CHARS = 20_000, 6_000_000, 5, 90
_ID = re.compile(r'\bid="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Facts:
    """What became of the facts of one compaction, as HTML."""

    number: int
    html: Markup


def handout(moment: Moment, viewer: Viewer) -> str:
    """Return the file of a session as it was at a moment. Problem: nothing had happened in it by then."""
    if not moment.state.history:
        raise Problem("export_nothing")
    shown = _masked(moment)
    # As at a past moment, where nothing waits for an answer; and nothing of this visit goes into the file.
    viewer = replace(
        viewer, view="full", at=shown.committed, theme="auto", text_size="normal", facts="few", part=0, nonce="",
        form_token="", scripts=(), assets="", whole=True,
    )  # fmt: skip
    say = _said(viewer)
    rows, first = _rows(shown, viewer, say)
    ids = set(_ID.findall(rows))

    def standing(html: str) -> Markup:
        return Markup(linked(alone(html, say), ids))

    started = shown.state.started
    style = "\n".join((STATIC / "css" / f"{name}.css").read_text("utf-8") for name in STYLES)
    panel = panel_of(shown, replace(viewer, tab="now"))
    return viewer.page(
        "handout.html",
        session=shown,
        title=in_language(shown.lab.title, viewer.language),
        called=_called(shown.state),
        extensions=started.extensions if started else (),
        begun=_moment(shown.records[0].time),
        ended=_moment(shown.records[-1].time),
        meter=standing(viewer.block("session.html", "meter", panel=panel)),
        rows=Markup(linked(rows, ids)),
        left=first - 1,
        now=standing(viewer.page("panel/now.html", panel=panel)),
        turns=standing(_turns(shown, viewer)),
        lost=[Facts(each.number, standing(each.html)) for each in _lost(shown, viewer)],
        few=FEW,
        style=Markup(style),
        hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )


def _masked(moment: Moment) -> Moment:
    """Return the moment with its texts masked; the figures stay those of the texts as they were."""
    records = masked(moment.records)
    if all(one.event is two.event for one, two in zip(records[1:], moment.records[1:], strict=True)):
        return moment
    told = State(lambda wire: Size())
    for each in records:
        told.apply(each.seq, each.event)
    known, real = _sized(told, moment.state), moment.state
    inside = {number: _sized(child.state, real.children[number].state) for number, child in told.children.items()}
    state = fold([(each.seq, each.event) for each in records], known, inside)
    for one, two in [(state, real), *((child.state, real.children[n].state) for n, child in state.children.items())]:
        one.context.totals = dict(two.context.totals)
        pairs = zip(one.instructed, two.instructed, strict=True)
        one.instructed[:] = [replace(made, event=instructed.event) for instructed, made in pairs]
    return replace(moment, state=state, records=records)


def _sized(told: State, real: State) -> dict[int, Entry]:
    """Return the messages of `told`, by journal number, with the sizes that they have in `real`."""
    sizes = {entry.seq: entry.size for entry in _entries(real)}
    return {entry.seq: replace(entry, size=sizes[entry.seq]) for entry in _entries(told)}


def _entries(state: State) -> list[Entry]:
    return [*state.history, *(made.summary for made in state.compactions)]


def _rows(shown: Moment, viewer: Viewer, say: Callable[[str], str]) -> tuple[str, int]:
    """Return the newest rows, and the journal number that they begin at: 1 where none was left out."""
    parts: list[str] = []
    last = shown.committed
    while last and sum(map(len, parts)) < ROWS_CHARS:
        parts.append(alone(render_earlier(shown, viewer, last + 1), say))
        before = part_before(shown, last, 1, PAGE).before
        last = before - 1 if before else 0
    return "\n".join(reversed(parts)), last + 1


def _turns(shown: Moment, viewer: Viewer) -> str:
    panel = panel_of(shown, replace(viewer, tab="turns"))
    return viewer.page("panel/turns.html", panel=panel)


def _lost(shown: Moment, viewer: Viewer) -> list[Facts]:
    """Return what became of the facts of the newest compactions in force, the newest first."""
    found = []
    for made in reversed(shown.state.in_force[-MOST_LOST:]):
        number = made.event.number
        panel = panel_of(shown, replace(viewer, tab="lost", compaction=number))
        html = viewer.page("panel/lost.html", panel=panel).replace('"lost-title"', f'"lost-{number}-title"')
        found.append(Facts(number, Markup(html)))
    return found


def _said(viewer: Viewer) -> Callable[[str], str]:
    """Return what makes of a text what the file says: masked, and cut visibly where it is long."""

    def say(text: str) -> str:
        told = mask(text)
        left = len(told) - TEXT_CHARS
        return told if left <= 0 else f"{told[:TEXT_CHARS]} {viewer.words.t('handout.cut', n=left).unescape()}"

    return say


def _called(state: State) -> str:
    first = " ".join(state.tasks[0].text.split()) if state.tasks else ""
    return state.name or (first if len(first) <= NAME_CHARS else f"{first[:NAME_CHARS]}…")


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
