"""Where spans go: Phoenix's address, its project and its key, from the variables that Phoenix's own clients read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.model.provider import read_environment

ADDRESS, PROJECT = "http://127.0.0.1:6006", "context-lab"
_PATH = "/v1/traces"
_ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class Place:
    """address: where spans are sent, with its path; "" where none was meant that can be one. shown: without secrets.

    headers: (name, value) pairs, which may be secret.
    """

    address: str
    shown: str
    project: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def here(address: str = "", project: str = "") -> Place:
    """Return the place that the environment and the file .env name; what is given here counts first. Reads a file."""
    return place_of(read_environment(_ROOT), address, project)


def place_of(environment: Mapping[str, str], address: str = "", project: str = "") -> Place:
    """Return the place that `environment` names, with variables that begin with PHOENIX_ and end as in `_NAMES`."""
    told = {name: environment.get(f"PHOENIX_{name}", "").strip() for name in _NAMES}
    whole = (address or told["COLLECTOR_ENDPOINT"] or ADDRESS).strip().rstrip("/")
    project = project or told["PROJECT_NAME"] or PROJECT
    headers = dict(_headers(told["CLIENT_HEADERS"]))
    if told["API_KEY"] and "authorization" not in headers:
        headers["authorization"] = f"Bearer {told['API_KEY']}"
    try:
        parts = urlsplit(whole)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return Place("", "", project)
    if not good:
        return Place("", "", project)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    shown = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    path = parts.path.removesuffix(_PATH).rstrip("/")
    # The password of an address goes along, but is never shown.
    return Place(f"{parts.scheme}://{parts.netloc}{path}{_PATH}", shown + path, project, tuple(headers.items()))


_NAMES = ("COLLECTOR_ENDPOINT", "PROJECT_NAME", "API_KEY", "CLIENT_HEADERS")


def _headers(text: str) -> list[tuple[str, str]]:
    """Return the headers of a list such as "a=b,c=d", each part of it percent-encoded."""
    pairs = [part.partition("=") for part in text.split(",") if "=" in part]
    found = [(unquote(name).strip().lower(), unquote(value).strip()) for name, _, value in pairs]
    return [(name, value) for name, value in found if name.isascii() and name and value.isprintable()]
