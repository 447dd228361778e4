"""The way to a model: one request out, one streamed reply back, every failure a ModelError.

The only file that knows the client library. Knows nothing of events, history or how a tool runs.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType, ModuleType
from typing import Any

from harness.model.adapted import Adapted
from harness.model.errors import ModelError, classify, detail, wait_before
from harness.model.provider import NO_KEY, Provider, is_loopback
from harness.model.reply import Assembly, Kind, Reply
from harness.model.text_calls import take_calls
from harness.model.windows import Listed, read_list
from harness.request import Request

OnDelta = Callable[[str, Kind], None]
NO_HEADERS: Mapping[str, str] = MappingProxyType({})

RETRIES = 2
CONNECT_SECONDS = 10.0
# How long a server may say nothing. One of the user's own reads a long prompt for minutes before its first
# byte; a hosted one sends a sign of life meanwhile.
STALL_SECONDS = 60.0
OWN_STALL_SECONDS = 300.0


class Gateway:
    """The connections to one provider, for any number of sessions at once.

    Times are seconds. retries: how often a busy or unreachable server is asked again.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        stall_seconds: float | None = None,
        retries: int = RETRIES,
    ) -> None:
        own = provider.kind in ("local", "compatible")
        self.provider = provider
        self._connect = connect_seconds
        self._stall = stall_seconds or (OWN_STALL_SECONDS if own else STALL_SECONDS)
        self._retries = retries
        self._client: Any = None
        self._openai: Any = None
        self._opening = asyncio.Lock()
        self._adapted = Adapted()

    async def stream(self, request: Request, on_delta: OnDelta, *, headers: Mapping[str, str] = NO_HEADERS) -> Reply:
        """Send `request` and return the whole reply; `on_delta` gets each piece as it comes.

        headers: HTTP headers beside the client's own. Raises ModelError. Cancelling closes the connection at once.
        """
        started = time.monotonic()
        attempt = 0
        while True:
            assembly = Assembly(_new_id)
            try:
                await self._once(request, assembly, on_delta, headers)
                break
            except ModelError as error:
                if self._adapted.learn(error, request):
                    continue
                attempt += 1
                wait = wait_before(error, attempt)
                if wait is None or attempt > self._retries or assembly.chunks:
                    raise
                await asyncio.sleep(wait)
        reply = assembly.reply(time.monotonic() - started, set())
        reply = take_calls(reply, [tool["function"]["name"] for tool in request.tools], _new_id)
        extra = {"adapted_request"} if self._adapted.fields else set()
        return replace(reply, marks=tuple(sorted({*reply.marks, *extra})))

    async def list_models(self) -> tuple[Listed, ...]:
        """Return the models that the server lists. Raises ModelError."""
        openai = await self._library()
        try:
            return read_list(await self._client.get("/models", cast_to=object))
        except (openai.APIError, ValueError) as error:
            raise self._failure(openai, error, False) from error

    async def prepare(self) -> None:
        """Load the client library now, so that the first call need not wait for it."""
        await self._library()

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _once(self, request: Request, assembly: Assembly, on_delta: OnDelta, headers: Mapping[str, str]) -> None:
        openai = await self._library()
        try:
            body = self._adapted.body(request)
        except ValueError as error:
            raise ModelError("refused", f"the request cannot be written as JSON: {error}") from error
        try:
            # `create` would order the fields its own way; `post` sends the bytes as they are.
            stream = await self._client.post(
                "/chat/completions",
                content=body,
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
                options={"headers": {"Content-Type": "application/json", **headers}},
            )
            async with stream:
                async for chunk in stream:
                    for text, kind in assembly.add(chunk if isinstance(chunk, dict) else {}):
                        on_delta(text, kind)
                    if assembly.left <= 0:
                        break
        except (openai.APIError, ValueError) as error:
            raise self._failure(openai, error, assembly.chunks > 0) from error
        _check_end(assembly, stream.response.headers)

    async def _library(self) -> ModuleType:
        """Return the client library, with a client open. It takes over a second: not in the event loop."""
        async with self._opening:
            if self._client is None:
                await asyncio.to_thread(self._open)
        return self._openai

    def _open(self) -> None:
        # Here and not above: the page must not wait for it, nor those who never call a model.
        import openai

        address = self.provider.base_url
        # No proxy of the environment may get what is meant for this machine, and no redirect the key.
        http = openai.DefaultAsyncHttpxClient(
            timeout=openai.Timeout(self._stall, connect=self._connect),
            trust_env=not is_loopback(address),
            follow_redirects=False,
        )
        client = openai.AsyncOpenAI(
            api_key=self.provider.api_key or NO_KEY, base_url=address, max_retries=0, http_client=http
        )
        if self.provider.kind != "openai":
            # The client reads them from the environment; they are nothing to another provider.
            client.organization = client.project = None
        # Both here: a Stop may leave this thread to end alone.
        self._openai, self._client = openai, client

    def _failure(self, openai: ModuleType, error: Exception, midway: bool) -> ModelError:
        """Return the ModelError for what the client library raised; `midway`: after a first chunk."""
        key, cause = self.provider.api_key, error.__cause__
        match error:
            case openai.APITimeoutError():
                connecting = "Connect" in type(cause).__name__
                what = "no connection for" if connecting else "nothing came for"
                return ModelError("timeout", f"{what} {self._connect if connecting else self._stall:g} s")
            case openai.APIConnectionError():
                where = "" if midway else f"{self.provider.base_url}: "
                return ModelError("broken_stream" if midway else "connection", detail(f"{where}{cause}", key))
            case openai.APIStatusError():
                wait = error.response.headers.get("retry-after", "")
                text = error.response.text
                return classify(error.status_code, error.body, text, key=key, retry_after=wait)
            case openai.APIError():
                return classify(None, error.body, error.message, key=key)
        return ModelError("broken_stream", detail(f"a chunk that is no JSON: {error}", key))


def _check_end(assembly: Assembly, headers: Mapping[str, str]) -> None:
    """Raise ModelError if the stream that just ended was none, or may have been cut."""
    kind = headers.get("content-type", "nothing")
    if not assembly.chunks and "event-stream" not in kind:
        raise ModelError("refused", f"no stream came but {kind}; does the base URL end in /v1?")
    # Without a length or chunked framing the end of a stream looks like a cut one.
    framed = "content-length" in headers or "chunked" in headers.get("transfer-encoding", "")
    if not assembly.finish and not framed:
        raise ModelError("broken_stream", "the connection ended before the reply did")


def _new_id() -> str:
    return f"call_{secrets.token_hex(8)}"
