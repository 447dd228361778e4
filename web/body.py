"""Reads the body of a change: bounded in size and time, a form or JSON, as text fields."""

import asyncio
import json
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.types import Receive

from web.access import Refusal

LIMIT = 1_048_576  # bytes
SECONDS = 30  # a body that takes longer is not from one of our pages
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


class BodyRefused(Exception):
    """The body is not read or not understood; `refusal` says why."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.refusal = Refusal(status, code)


async def read_fields(headers: Mapping[str, list[str]], receive: Receive) -> dict[str, str]:
    """Return the fields of the body. BodyRefused: wrong type, too large, too slow, or broken."""
    kind = headers.get("content-type", [""])[0].split(";")[0].strip().lower()
    if kind not in (FORM, JSON) or len(headers["content-type"]) > 1:
        raise BodyRefused(415, "body_type")
    if _length(headers) > LIMIT:
        raise BodyRefused(413, "body_size")
    try:
        async with asyncio.timeout(SECONDS):
            body = await _read(receive)
    except TimeoutError as error:
        raise BodyRefused(408, "body_slow") from error
    try:
        return _form(body) if kind == FORM else _json(body)
    except (ValueError, RecursionError) as error:
        raise BodyRefused(400, "body_broken") from error


def _length(headers: Mapping[str, list[str]]) -> int:
    value = headers.get("content-length", ["0"])[0]
    return int(value) if value.isdecimal() else 0


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyRefused(400, "body_broken")
        body += message.get("body", b"")
        # Counted as it comes, since a chunked body does not say how long it will be.
        if len(body) > LIMIT:
            raise BodyRefused(413, "body_size")
        if not message.get("more_body", False):
            return bytes(body)


def _form(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="replace", max_num_fields=50))


def _json(body: bytes) -> dict[str, str]:
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return {str(name): item if isinstance(item, str) else json.dumps(item) for name, item in value.items()}
