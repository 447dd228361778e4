"""Makes a piece of the page one that stands alone, without a server: what would ask it for something is taken out.

Knows HTML and nothing of sessions. What goes in was rendered by our templates, so it is well formed.
"""

import re
from collections.abc import Callable, Collection
from html import escape
from html.parser import HTMLParser

# Without an end tag of their own.
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
# What only a server can answer, with all that stands inside.
GONE = frozenset({"form", "script", "button", "img", "iframe", "object", "input", "textarea", "link", "style"})
# Of a link to another page of the server: switches, and ways to more.
SWITCHES = frozenset({"switch", "tabs", "earlier"})
_INSIDE = re.compile(r'<a href="#([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)
KEPT_ADDRESSES = ("https://", "http://", "mailto:")

Attributes = list[tuple[str, str | None]]


def alone(html: str, say: Callable[[str], str]) -> str:
    """Return `html` with no form, no script, and no link but to an element by its id, or out of the lab.

    say: what becomes of each text in it before it is escaped, such as masked and cut.
    """
    parser = _Alone(say)
    parser.feed(html)
    parser.close()
    return "".join(parser.out)


def linked(html: str, ids: Collection[str]) -> str:
    """Return what `alone` returned, with no link to an element that is not among `ids`."""
    return _INSIDE.sub(lambda found: found[0] if found[1] in ids else f"<span{found[2]}>{found[3]}</span>", html)


class _Alone(HTMLParser):
    def __init__(self, say: Callable[[str], str]) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._say = say
        self._left: list[str] = []  # the elements that are open inside one that is taken out
        self._links: list[str] = []  # what each open link has become

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        if self._left or tag in GONE or self._is_switch(tag, attrs):
            if tag not in VOID:
                self._left.append(tag)
            return
        named = [(name, value) for name, value in attrs if not name.startswith(("hx-", "on")) and name != "style"]
        if tag == "a":
            tag, named = self._link(dict(named))
            self._links.append(tag)
        written = "".join(f' {name}="{escape(self._say(value or ""))}"' for name, value in named)
        self.out.append(f"<{tag}{written}>")

    def handle_endtag(self, tag: str) -> None:
        if self._left:
            self._left.pop()
            return
        if tag not in VOID:
            self.out.append(f"</{self._links.pop() if tag == 'a' else tag}>")

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        # Only drawings write it so, and there the slash means something.
        if not self._left and tag not in GONE:
            written = "".join(f' {name}="{escape(self._say(value or ""))}"' for name, value in attrs)
            self.out.append(f"<{tag}{written}/>")

    def handle_data(self, data: str) -> None:
        if not self._left:
            self.out.append(escape(self._say(data), quote=False))

    def _is_switch(self, tag: str, attrs: Attributes) -> bool:
        named = dict(attrs)
        classes = set((named.get("class") or "").split())
        if tag != "a":
            return bool(classes & SWITCHES)
        # What leads to more of something on the server; a message's own link becomes one inside the file.
        return bool(classes & {"button", "inline"}) or bool({"rel", "hx-get"} & named.keys() - self._outside(named))

    @staticmethod
    def _outside(named: dict[str, str | None]) -> set[str]:
        return {"rel"} if (named.get("href") or "").startswith(KEPT_ADDRESSES) else set()

    def _link(self, named: dict[str, str | None]) -> tuple[str, Attributes]:
        """Return what a link becomes: one inside the file, one out of the lab, or no link any more."""
        address = named.pop("href", None) or ""
        if address.startswith(KEPT_ADDRESSES):
            return "a", [("href", address), *named.items()]
        place = address.partition("#")[2]
        kept = [(name, value) for name, value in named.items() if name in ("class", "lang")]
        return ("a", [("href", f"#{place}"), *kept]) if place else ("span", kept)
