"""Who looks at a page and how: language, theme, view, tab. Everything that a template gets each time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args
from urllib.parse import urlencode

from markupsafe import Markup

from web.markdown import render_markdown
from web.pages import Pages
from web.words import Language, Words, language_of

Theme = Literal["auto", "light", "dark"]
View = Literal["full", "model"]
Tab = Literal["now", "turns"]
Scale = Literal["true", "equal"]
THEMES: tuple[Theme, ...] = get_args(Theme)
ASKED: dict[str, tuple[str, ...]] = {"view": get_args(View), "tab": get_args(Tab), "scale": get_args(Scale)}


@dataclass(frozen=True, slots=True)
class Script:
    """A script of the page, from this server."""

    src: str
    module: bool = False


@dataclass(frozen=True, slots=True)
class Viewer:
    """One reader of one page. `nonce` allows the page's scripts, `form_token` goes into every form,
    `assets` tells the scripts where the page's parts come from.
    """

    pages: Pages
    language: Language = "en"
    theme: Theme = "auto"
    view: View = "full"
    tab: Tab = "now"
    scale: Scale = "true"
    nonce: str = ""
    form_token: str = ""
    scripts: tuple[Script, ...] = ()
    assets: str = ""

    @property
    def words(self) -> Words:
        """Return the catalogue in the viewer's language."""
        return self.pages.words[self.language]

    def asked(self, query: Mapping[str, str]) -> "Viewer":
        """Return the viewer with view, tab and scale as the address asks for them; an unknown value is ignored."""
        known = {name: query[name] for name, values in ASKED.items() if query.get(name) in values}
        return replace(self, **known)  # type: ignore[arg-type]

    def query(self, **changes: str) -> str:
        """Return the query for this view with `changes`: query(tab="turns") -> "?tab=turns". Defaults are left out."""
        values = {name: changes.get(name, getattr(self, name)) for name in ASKED}
        kept = {name: value for name, value in values.items() if value != ASKED[name][0]}
        return "?" + urlencode(kept | {k: v for k, v in changes.items() if k not in ASKED})

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
            "markdown": render_markdown,
            "language_of": language_of,
        }
