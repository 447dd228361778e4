"""Who may ask for what: host, origin, fetch metadata, token. Pure: headers in, a refusal or None out."""

import hmac
import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from harness.model import provider
from web.settings import WebSettings

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
ANY = ("0.0.0.0", "::")
OPEN_PATHS = ("/static/", "/healthz", "/favicon.ico")  # hold no data, so they need no token
CHANGE_HEADER = "x-context-lab"
Headers = Mapping[str, list[str]]  # names in lower case, every value that was sent


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered: an HTTP status, and a code that the catalogue explains."""

    status: int
    code: str


def is_loopback(host: str) -> bool:
    """Say whether `host`, as given to the server, reaches this machine only."""
    bare = host.strip("[]")
    return provider.is_loopback(f"//[{bare}]" if ":" in bare else f"//{bare}")


def cookie_name(settings: WebSettings) -> str:
    """Return the name of the token's cookie. Cookies ignore ports, so the name carries it."""
    return f"context-lab-{settings.port}"


def check_host(headers: Headers, settings: WebSettings) -> Refusal | None:
    """Refuse a Host that is not ours: this stops a foreign name that was made to point at this machine."""
    hosts = headers.get("host", [])
    if len(hosts) != 1 or not _is_ours(hosts[0].lower(), settings):
        return Refusal(400, "host")
    return None


def check_source(headers: Headers, method: str, scheme: str) -> Refusal | None:
    """Refuse what another site makes the browser send. A link that a person follows to a page is let in."""
    origins = headers.get("origin", [])
    if len(origins) > 1 or (origins and origins[0] != f"{scheme}://{headers['host'][0]}".lower()):
        return Refusal(403, "origin")
    site = headers.get("sec-fetch-site", ["same-origin"])
    if any(value not in ("same-origin", "none") for value in site):
        followed = headers.get("sec-fetch-mode") == ["navigate"] and headers.get("sec-fetch-dest") == ["document"]
        if method not in ("GET", "HEAD") or not followed:
            return Refusal(403, "cross_site")
    return None


def check_token(headers: Headers, cookies: Mapping[str, str], settings: WebSettings) -> Refusal | None:
    """Refuse who does not know the token, by cookie or as a bearer."""
    if not settings.token:
        return None
    given = [cookies.get(cookie_name(settings), "")]
    given += [value[7:].strip() for value in headers.get("authorization", []) if value[:7].lower() == "bearer "]
    return None if any(same(value, settings.token) for value in given) else Refusal(401, "token")


def check_change(headers: Headers, fields: Mapping[str, str], settings: WebSettings) -> Refusal | None:
    """Refuse a change that has neither our header, which no foreign page can send, nor a form's token."""
    if CHANGE_HEADER in headers or same(fields.get("token", ""), settings.form_token):
        return None
    return Refusal(403, "form_token")


def same(given: str, secret: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _is_ours(host: str, settings: WebSettings) -> bool:
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if host not in (f"{name}:{port}", f"[{name}]:{port}", name, f"[{name}]") or (port or 80) != settings.port:
        return False
    if f"[{name}]" in LOOPBACK or name in LOOPBACK or name == settings.host:
        return True
    if settings.host not in ANY:
        return False
    # Listening everywhere: a plain address cannot be a foreign name, nor can this machine's own one.
    return _is_address(name) or name == socket.gethostname().lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
