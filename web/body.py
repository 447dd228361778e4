"""Reads the body of a change: bounded in size and time, a form or JSON, as text fields; and a form with one file."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.types import Receive

from harness.messages import clean
from web.access import Refusal

LIMIT = 1_048_576  # bytes
SECONDS = 30  # a body that takes longer is not from one of our pages
# Of a form with a file: the whole, each of its other fields, and how long it may take over a slow line.
UPLOAD_LIMIT, FIELD_LIMIT, UPLOAD_SECONDS = 64 * LIMIT, 10_000, 600
FORM, JSON, MULTIPART = "application/x-www-form-urlencoded", "application/json", "multipart/form-data"


class BodyRefused(Exception):
    """The body is not read or not understood; `refusal` says why."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.refusal = Refusal(status, code)


async def read_fields(headers: Mapping[str, list[str]], receive: Receive) -> dict[str, str]:
    """Return the fields of the body. BodyRefused: wrong type, too large, too slow, or broken."""
    kind = _kind(headers)
    if kind not in (FORM, JSON):
        raise BodyRefused(415, "body_type")
    if _length(headers) > LIMIT:
        raise BodyRefused(413, "body_size")
    try:
        async with asyncio.timeout(SECONDS):
            body = b"".join([piece async for piece in _pieces(receive, LIMIT, BodyRefused(413, "body_size"))])
        return _form(body) if kind == FORM else _json(body)
    except TimeoutError as error:
        raise BodyRefused(408, "body_slow") from error
    except (ValueError, RecursionError) as error:
        raise BodyRefused(400, "body_broken") from error


async def read_upload(headers: Mapping[str, list[str]], receive: Receive) -> tuple[dict[str, str], UploadFile | None]:
    """Return the fields of a form, and its file or None, which the caller closes. It is kept on disk, not in memory.

    BodyRefused: wrong type, too large, too slow, or broken; then nothing of the file is left.
    """
    if _kind(headers) != MULTIPART:
        raise BodyRefused(415, "body_type")
    if _length(headers) > UPLOAD_LIMIT:
        raise BodyRefused(413, "upload_size")
    parser = _FileForm(headers["content-type"][0], receive)
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            items = (await parser.parse()).multi_items()
    except TimeoutError as error:
        raise BodyRefused(408, "body_slow") from error
    except MultiPartException as error:
        raise BodyRefused(400, "body_broken") from error
    fields = {name: value for name, value in items if isinstance(value, str)}
    return fields, next((value for _, value in items if isinstance(value, UploadFile)), None)


class _FileForm(MultiPartParser):
    """A form with one file. One that breaks off is broken, so that the file of it is closed."""

    def __init__(self, kind: str, receive: Receive) -> None:
        bounds = {"max_files": 1, "max_fields": 10, "max_part_size": FIELD_LIMIT}
        super().__init__(Headers({"content-type": kind}), self._read(receive), **bounds)
        self._whole = False

    def on_end(self) -> None:
        """Hear that the last part has ended."""
        self._whole = True

    async def _read(self, receive: Receive) -> AsyncGenerator[bytes, None]:
        async for piece in _pieces(receive, UPLOAD_LIMIT, BodyRefused(413, "upload_size")):
            yield piece
        if not self._whole:
            raise BodyRefused(400, "body_broken")


def _kind(headers: Mapping[str, list[str]]) -> str:
    kinds = headers.get("content-type", [])
    return kinds[0].split(";")[0].strip().lower() if len(kinds) == 1 else ""


def _length(headers: Mapping[str, list[str]]) -> int:
    value = headers.get("content-length", ["0"])[0]
    return int(value) if value.isdecimal() else 0


async def _pieces(receive: Receive, limit: int, too_large: BodyRefused) -> AsyncGenerator[bytes, None]:
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyRefused(400, "body_broken")
        piece, more = message.get("body", b""), message.get("more_body", False)
        size += len(piece)
        # Counted as it comes, since a chunked body does not say how long it will be.
        if size > limit:
            raise too_large
        yield piece


def _form(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="replace", max_num_fields=50))


def _json(body: bytes) -> dict[str, str]:
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    # A form cannot carry half a sign of UTF-16, JSON can.
    return {clean(name): clean(item if isinstance(item, str) else json.dumps(item)) for name, item in value.items()}
