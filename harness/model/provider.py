"""Which model answers, and why: a pure choice from the environment and the command's options.

Knows nothing of how a model is reached; nothing here opens a connection.
"""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from dotenv import dotenv_values

from harness.model.errors import detail
from harness.model.windows import Listed, window_of
from harness.problems import Problem

DEEPSEEK_ADDRESS = "https://api.deepseek.com"
DEEPSEEK_MODEL = "deepseek-flash"
OPENAI_ADDRESS = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-4.1-mini"
# What is sent where a server wants no key; the client refuses to send none.
NO_KEY = "none"


@dataclass(frozen=True, slots=True)
class Provider:
    """The model that answers.

    reason: a code that the catalogue explains: gguf, base_url, deepseek_key, openai_key,
        openai_base_url, no_key.
    model: empty until the server was asked for its list. base_url: empty until the own server runs.
    window: in tokens; window_source: setting, listed, table, default, or empty where it is not known yet.
    """

    kind: Literal["offline", "deepseek", "openai", "compatible", "local"]
    model: str
    base_url: str
    api_key: str = field(repr=False)
    reason: str
    window: int | None = None
    window_source: str = ""


def read_environment(folder: Path) -> dict[str, str]:
    """Return the variables of `folder`/.env under those of the process. Changes nothing.

    Problem: the file is no UTF-8 text.
    """
    try:
        # No interpolation: what stands there is meant as it stands.
        lines = dotenv_values(folder / ".env", interpolate=False)
    except (UnicodeDecodeError, OSError) as error:
        raise Problem("env_file", reason=str(error)) from error
    return {name: value for name, value in lines.items() if value is not None} | dict(os.environ)


def choose(environment: Mapping[str, str], *, model: str | None, base_url: str | None, gguf: str | None) -> Provider:
    """Return the provider: --gguf, then --base-url, DeepSeek's key, OpenAI's key or address, the offline model.

    Problem: a key or an address that cannot work, or a model that there is no way to.
    """
    provider = _first(environment, base_url, gguf)
    if provider.kind == "offline" and model:
        raise Problem("no_way_to_model", model=model)
    provider = replace(provider, model=model or provider.model)
    if setting := environment.get("MODEL_WINDOW", "").strip():
        if not setting.isascii() or not setting.isdigit() or int(setting) == 0:
            raise Problem("bad_window", value=detail(setting))
        return replace(provider, window=int(setting), window_source="setting")
    return provider if provider.kind in ("offline", "local") else settled(provider, ())


def _first(environment: Mapping[str, str], base_url: str | None, gguf: str | None) -> Provider:
    openai_model = environment.get("OPENAI_MODEL", "").strip()
    if gguf:
        return Provider("local", Path(gguf).stem, "", NO_KEY, "gguf")
    if base_url is not None:
        address = _address(base_url, "--base-url")
        return Provider("compatible", openai_model, address, _openai_key(environment), "base_url")
    if environment.get("DEEPSEEK_API_KEY"):
        key = _key(environment["DEEPSEEK_API_KEY"], "DEEPSEEK_API_KEY")
        address = _address(environment.get("DEEPSEEK_BASE_URL") or DEEPSEEK_ADDRESS, "DEEPSEEK_BASE_URL")
        name = environment.get("DEEPSEEK_MODEL", "").strip() or DEEPSEEK_MODEL
        return Provider("deepseek", name, address, key, "deepseek_key")
    address = _address(environment.get("OPENAI_BASE_URL") or OPENAI_ADDRESS, "OPENAI_BASE_URL")
    if address != OPENAI_ADDRESS:
        return Provider("compatible", openai_model, address, _openai_key(environment), "openai_base_url")
    if environment.get("OPENAI_API_KEY"):
        return Provider("openai", openai_model or OPENAI_MODEL, address, _openai_key(environment), "openai_key")
    return Provider("offline", "offline", "", NO_KEY, "no_key")


def settled(provider: Provider, listed: tuple[Listed, ...]) -> Provider:
    """Return `provider` with what the server's model list tells: a model where none was named, a window.

    A window that was set by hand stays.
    """
    name = provider.model or (listed[0].id if listed else "")
    provider = replace(provider, model=name)
    if provider.window_source == "setting" or not name:
        return provider
    hosted = provider.kind in ("deepseek", "openai")
    window, source = window_of(name, listed, known=hosted)
    return replace(provider, window=window, window_source=source)


def _openai_key(environment: Mapping[str, str]) -> str:
    value = environment.get("OPENAI_API_KEY", "")
    return _key(value, "OPENAI_API_KEY") if value else NO_KEY


def _key(value: str, name: str) -> str:
    """Return the key without the blanks around it. The value itself is never part of a problem."""
    key = value.strip()
    if not key:
        raise Problem("blank_key", name=name)
    if any(c.isspace() or not c.isascii() or not c.isprintable() or c in "\"'<>" for c in key):
        raise Problem("bad_key", name=name)
    return key


def _address(value: str, name: str) -> str:
    """Return the address without a slash at its end, or raise with what is wrong about it."""
    address = value.strip().rstrip("/").removesuffix("/chat/completions")
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or any(c.isspace() for c in address):
        raise Problem("bad_address", name=name, address=detail(value))
    if parts.username or parts.password:
        raise Problem("password_in_address", name=name)
    return address


def is_loopback(address: str) -> bool:
    """Return whether an address is this machine: is_loopback("http://127.0.0.1:8000/v1") -> True"""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
