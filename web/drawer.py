"""The settings drawer as values: what can be changed in a session, and what is in force. Knows no requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from markupsafe import Markup

from harness.by_hand import SETTING_MAX
from harness.combining import DEFAULTS
from harness.discovery import BASE_LAB, Lab
from harness.offline import FAULT_KINDS
from web.guide import in_language
from web.options import LEAST, MOST, SWITCHES
from web.presets import PresetView, presets_of
from web.shown import Shown
from web.trust import TrustView, trust_of
from web.viewer import Viewer

# The blocks of templates/drawer.html that change while the page is open, by the element that each one draws.
BLOCKS = {"fault-chip": "fault_chip", "drawer-session": "session"}
FORMS = {
    "drawer-presets": "presets",
    "drawer-numbers": "numbers",
    "drawer-extensions": "extensions",
    "drawer-faults": "faults",
}

Wrong = Literal["range", "running"]


@dataclass(frozen=True, slots=True)
class Switch:
    """A lab whose extension can be switched on. fixed: it is always on in this session."""

    number: str
    title: str
    goal: str
    on: bool
    fixed: bool


@dataclass(frozen=True, slots=True)
class Number:
    """A setting as its field shows it. text: what stands in the field. wrong: why that was not taken, or ""."""

    name: str
    text: str
    low: int
    high: int
    wrong: Wrong | Literal[""] = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A setting that is either on or off."""

    name: str
    on: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """How an open drawer is shown. typed: what stands in fields and was not taken, by name. wrong: why it was not."""

    typed: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, Wrong] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drawer:
    """What the drawer shows. back: where the page's own choices lead back to.

    fault: the one in force, or "". offline: the offline model answers, so that faults can be acted out. trust: of the
    folder's own files, None where there is nothing to trust.
    """

    back: str
    opened: bool
    switches: tuple[Switch, ...]
    presets: tuple[PresetView, ...]
    numbers: tuple[Number, ...]
    checks: tuple[Check, ...]
    fault: str
    offline: bool
    trust: TrustView | None

    @property
    def preset(self) -> PresetView | None:
        """Return the preset that is on, or None where the numbers are a person's own."""
        return next((each for each in self.presets if each.on), None)

    @property
    def wrong(self) -> bool:
        """Whether something that was typed could not be taken."""
        return any(number.wrong for number in self.numbers)

    @property
    def faults(self) -> Mapping[str, tuple[str, ...]]:
        """Return the codes of the faults by what goes wrong."""
        return FAULT_KINDS


def opened(query: Mapping[str, str]) -> Opened | None:
    """Return how the address wants the drawer: open with ?drawer=1, else closed."""
    return Opened() if "drawer" in query else None


def drawer_of(session: Shown, viewer: Viewer, opened: Opened | None) -> Drawer:
    """Return the drawer with what is in force, and what was typed where it was not taken."""
    state, typed, wrong = session.state, (opened or Opened()).typed, (opened or Opened()).wrong
    # What the labs bring comes first: it is what they are about.
    names = sorted(state.settings, key=lambda name: name in DEFAULTS)
    text = {name: typed.get(name, str(state.settings[name])) for name in names}
    numbers = (
        Number(name, text[name], LEAST.get(name, 0), MOST.get(name, SETTING_MAX), wrong.get(name, ""))
        for name in names
        if name not in SWITCHES
    )
    return Drawer(
        back=f"/s/{session.id}{viewer.query(drawer='1')}",
        opened=opened is not None,
        switches=tuple(_switch(session, lab, viewer) for lab in viewer.pages.labs.values()),
        presets=presets_of(session.lab, state.settings, viewer.language),
        numbers=tuple(numbers),
        checks=tuple(Check(name, text[name] == "1") for name in names if name in SWITCHES),
        fault=state.fault,
        offline=state.offline,
        trust=trust_of(session),
    )


def render_parts(session: Shown, viewer: Viewer) -> dict[str, Markup]:
    """Return what changes in the drawer and in the header while the page is open, by the id of its element."""
    return _blocks(session, viewer, drawer_of(session, viewer, None), BLOCKS)


def render_form(session: Shown, viewer: Viewer, opened: Opened, form: str) -> Markup:
    """Return one form of the drawer, named by the id of its element."""
    drawer = drawer_of(session, viewer, opened)
    return _blocks(session, viewer, drawer, {form: FORMS[form]})[form]


def _blocks(session: Shown, viewer: Viewer, drawer: Drawer, blocks: Mapping[str, str]) -> dict[str, Markup]:
    return {
        target: viewer.block("drawer.html", block, drawer=drawer, session_id=session.id)
        for target, block in blocks.items()
    }


def _switch(session: Shown, lab: Lab, viewer: Viewer) -> Switch:
    fixed = lab.number in (BASE_LAB, session.lab.number)
    title, goal = (in_language(text, viewer.language) for text in (lab.title, lab.goal))
    return Switch(lab.number, title, goal, fixed or lab.number in session.state.extensions, fixed)
