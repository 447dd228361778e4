"""Renders Markdown that nobody vouches for: a model's reply, or a lab's text. The only user of markdown-it-py.

HTML in it stays text, links go to http, https and mailto only, and no picture is ever loaded from another host.
"""

import functools
import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

_SAFE_LINK = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
# A picture of ours, as a lab's text in its folder names it.
_OURS = re.compile(r"\.\./\.\.(/static/pictures/[\w-]+\.(?:png|webp))")


def render_markdown(text: str, *, top: int = 3, pictures: bool = False) -> Markup:
    """Return `text` as HTML that is safe to show: "a **b**" -> "<p>a <strong>b</strong></p>".

    Its highest heading becomes one of level `top`, so that the page's own order of headings stays whole.
    pictures: those of `static/pictures` are shown, each as a link to itself.
    """
    parser, env = _parser(), {"pictures": pictures}
    tokens = parser.parse(text, env)
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    shift = top - min((int(token.tag[1:]) for token in headings), default=top)
    for token in headings:
        token.tag = f"h{min(6, int(token.tag[1:]) + shift)}"
    return Markup(parser.renderer.render(tokens, parser.options, env))


def split_sections(text: str) -> list[tuple[str, str]]:
    """Return Markdown as (heading of level 2, text below it); what stands before the first has the heading ""."""
    lines = text.splitlines()
    starts = [
        token.map[0] for token in _parser().parse(text) if token.type == "heading_open" and token.markup == "##"
        if token.map
    ]  # fmt: skip
    borders = [0, *starts, len(lines)]
    parts = [lines[a:b] for a, b in zip(borders, borders[1:], strict=False)]
    first = ("", "\n".join(parts[0]).strip())
    return [first, *((part[0].lstrip("# ").strip(), "\n".join(part[1:]).strip()) for part in parts[1:])]


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "langPrefix": ""}).enable("table")
    parser.validateLink = _allowed  # type: ignore[method-assign]
    parser.core.ruler.push("make_safe", _make_safe)
    return parser


def _allowed(address: str) -> bool:
    return bool(_SAFE_LINK.match(address.strip()) or _OURS.fullmatch(address))


def _make_safe(state: StateCore) -> None:
    for token in state.tokens:
        # The policy of the page allows no inline style, which is how the parser aligns a table's cell.
        if style := token.attrs.pop("style", ""):
            token.attrSet("class", "end" if "right" in str(style) else "start")
        # A fence's language comes from the text and would become a class.
        if token.type == "fence":
            token.info = ""
        if token.children is not None:
            token.children = _inline(token.children, pictures=state.env.get("pictures", False))


def _inline(tokens: Sequence[Token], *, pictures: bool) -> list[Token]:
    safe: list[Token] = []
    for token in tokens:
        if token.type == "image":
            safe += _own_picture(token) if pictures and _OURS.fullmatch(str(token.attrGet("src"))) else _image(token)
        else:
            if token.type == "link_open":
                token.attrSet("rel", "noopener noreferrer")
                token.attrSet("target", "_blank")
            safe.append(token)
    return safe


def _image(token: Token) -> list[Token]:
    """Return a picture as a plain mention of it, so that showing a page never calls another host."""
    name = Token("code_inline", "code", 0)
    name.content = f"{token.content or '…'} · {token.attrGet('src') or ''}"
    return [name]


def _own_picture(token: Token) -> list[Token]:
    """Return a picture of ours, and around it a link to it: in a narrow column it is small."""
    src = str(token.attrGet("src")).removeprefix("../..")
    token.attrs |= {"src": src, "loading": "lazy"}
    link = Token("link_open", "a", 1, {"href": src, "target": "_blank", "rel": "noopener"})
    return [link, token, Token("link_close", "a", -1)]
