"""Who looks at a page and how: language, theme, view, tab. Everything that a template gets each time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args
from urllib.parse import urlencode

from markupsafe import Markup

from web.markdown import render_markdown
from web.pages import Pages
from web.settings import TextSize, Theme
from web.units import UNITS, Unit, bare, sized
from web.words import Language, Words, language_of

View = Literal["full", "model"]
Tab = Literal["now", "turns", "diff", "lost", "trace"]
Scale = Literal["true", "equal"]
Facts = Literal["few", "user", "constraint", "error", "command", "path", "identifier", "number", "url"]
THEMES: tuple[Theme, ...] = get_args(Theme)
TEXT_SIZES: tuple[TextSize, ...] = get_args(TextSize)
ASKED: dict[str, tuple[str, ...]] = {
    "view": get_args(View),
    "tab": get_args(Tab),
    "scale": get_args(Scale),
    "unit": UNITS,
    "facts": get_args(Facts),
}
# Journal numbers and other numbers that the address may name; 0 is none.
NUMBERS = ("at", "compaction", "part", "task", "lines")


@dataclass(frozen=True, slots=True)
class Script:
    """A script of the page, from this server."""

    src: str
    module: bool = False


@dataclass(frozen=True, slots=True)
class Viewer:
    """One reader of one page. `nonce` allows the page's scripts, `form_token` goes into every form,
    `assets` tells the scripts where the page's parts come from. `at`: the journal number of the moment that the
    page shows, 0 for now; a page of a past moment stands still and changes nothing. `facts`, `compaction` and `part`
    say what the tab "What was lost" shows: which group, of which compaction (0: the newest), which part of a long one.
    task, lines: what the tab "Trace" shows: which task, and up to which line of a long one; 0 for the newest.
    child: the sub-agent whose rows are shown, 0 for the session's own; nested: inside the row of its call.
    whole: nothing can be asked for later, so that all of it must be there.
    """

    pages: Pages
    language: Language = "en"
    theme: Theme = "auto"
    text_size: TextSize = "normal"
    view: View = "full"
    tab: Tab = "now"
    scale: Scale = "true"
    unit: Unit = "characters"
    facts: Facts = "few"
    at: int = 0
    compaction: int = 0
    part: int = 0
    task: int = 0
    lines: int = 0
    child: int = 0
    nested: bool = False
    whole: bool = False
    nonce: str = ""
    form_token: str = ""
    scripts: tuple[Script, ...] = ()
    assets: str = ""

    @property
    def words(self) -> Words:
        """Return the catalogue in the viewer's language."""
        return self.pages.words[self.language]

    @property
    def prefix(self) -> str:
        """Return what ids begin with, so that those of a sub-agent's rows are like no other's on the page."""
        return f"child-{self.child}-" if self.nested else ""

    def asked(self, query: Mapping[str, str]) -> "Viewer":
        """Return the viewer with view, tab and scale as the address asks for them; an unknown value is ignored."""
        known = {name: query[name] for name, values in ASKED.items() if query.get(name) in values}
        numbers = {name: _number(query.get(name, "")) for name in NUMBERS}
        return replace(self, **numbers, **known)  # type: ignore[arg-type]

    def query(self, **changes: str) -> str:
        """Return the query for this view with `changes`: query(tab="turns") -> "?tab=turns". Defaults are left out.

        The moment stays, unless at="" leads back to now.
        """
        values = {name: changes.get(name, getattr(self, name)) for name in ASKED}
        kept = {name: value for name, value in values.items() if value != ASKED[name][0]}
        numbers = {name: str(getattr(self, name)) for name in NUMBERS if getattr(self, name)}
        others = numbers | {name: value for name, value in changes.items() if name not in ASKED}
        return "?" + urlencode(kept | {name: value for name, value in others.items() if value})

    def page(self, name: str, **context: object) -> str:
        """Return a whole page."""
        return self.pages.page(name, self._common() | context)

    def block(self, name: str, block: str, **context: object) -> Markup:
        """Return one block of a page. It is Markup: the template has escaped what needs it."""
        return Markup(self.pages.block(name, block, self._common() | context))

    def _common(self) -> dict[str, object]:
        words = self.words
        return {
            "viewer": self,
            "t": words.t,
            "code": words.code,
            "number": words.number,
            "quantity": words.quantity,
            "seconds": words.seconds,
            "percent": words.percent,
            "figure": words.figure,
            "counted": words.counted,
            "sized": partial(sized, words, self.unit),
            "bare": partial(bare, words, self.unit),
            # For what a provider never reports and a comparison still needs: then it is the estimate, and says so.
            "drawn": partial(sized, words, "estimated" if self.unit == "reported" else self.unit),
            "markdown": render_markdown,
            "language_of": language_of,
        }


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else 0
