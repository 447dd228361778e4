"""What the web server was started with. Plain values; knows no sessions and no requests."""

import secrets
from dataclasses import dataclass, field
from typing import Literal

from web.words import Language

Theme = Literal["auto", "light", "dark"]
TextSize = Literal["normal", "large", "largest"]


def new_token() -> str:
    """Return 24 random bytes as hex."""
    return secrets.token_hex(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """How the page is served.

    host, port: where the server listens (the port that was really bound).
    token: what a visitor must know, or "" on loopback, where being on the machine is enough.
    language: the page's language unless the visitor chose one; None leaves it to the browser.
    theme, text_size: how the page looks unless the visitor chose otherwise.
    offline_assets: take every asset from this server, never from another host.
    sandbox: the code of the sandbox in force, for the page.
    form_token: proves that a form without JavaScript came from a page of this process.
    """

    host: str
    port: int
    token: str = field(default="", repr=False)
    language: Language | None = None
    theme: Theme = "auto"
    text_size: TextSize = "normal"
    offline_assets: bool = False
    sandbox: str = "none"
    form_token: str = field(default_factory=new_token, repr=False)
