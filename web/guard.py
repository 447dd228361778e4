"""The guard in front of every route: who asks, from where, with what. Knows no route and no session.

Lets a request through with `nonce`, `form` (the fields of a change) and `upload` (its file) in its state, and puts
the security headers on every response, whichever route or error it comes from.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import parse_qsl, urlencode

from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from web import access
from web.access import Refusal
from web.body import BodyRefused, read_fields, read_upload
from web.headers import secured
from web.settings import WebSettings

Refuse = Callable[[Scope, Refusal], Response]


class Guard:
    """ASGI middleware. `refuse` makes the page for a refusal; `scripts` are the addresses the page may load.

    uploads: the paths that take a form with a file; every other takes small forms and JSON.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: WebSettings,
        refuse: Refuse,
        scripts: Iterable[str],
        uploads: Iterable[str] = (),
    ) -> None:
        self._app, self._settings, self._refuse = app, settings, refuse
        self._scripts, self._uploads = tuple(scripts), frozenset(uploads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] == "websocket":  # the page uses none
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        scope.setdefault("state", {}).update(nonce=nonce, form={}, upload=None)

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = secured(message.get("headers", []), nonce, self._scripts)
            await send(message)

        try:
            answer = await self._check(scope, receive)
            await (answer or self._app)(scope, receive, sealed)
        finally:
            if upload := scope["state"]["upload"]:
                await upload.close()

    async def _check(self, scope: Scope, receive: Receive) -> Response | None:
        headers = _gather(scope)
        settings, method = self._settings, scope["method"]
        refusal = access.check_host(headers, settings) or access.check_source(headers, method, scope["scheme"])
        if refusal is None and method not in ("GET", "HEAD", "POST"):
            refusal = Refusal(405, "method")
        if refusal is None and not scope["path"].startswith(access.OPEN_PATHS):
            if settings.token and (answer := self._exchange(scope)):
                return answer
            refusal = access.check_token(headers, _cookies(headers), settings)
        if refusal is None and method == "POST":
            refusal = await self._read(scope, headers, receive)
        return self._refuse(scope, refusal) if refusal else None

    def _exchange(self, scope: Scope) -> Response | None:
        """Turn the token in an address into a cookie, and lead to the address without it."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if scope["method"] != "GET" or not any(access.same(value, self._settings.token) for value in given):
            return None
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # One slash in front: a path of two would lead to another host.
        path = "/" + scope["path"].lstrip("/\\")
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        answer.set_cookie(
            access.cookie_name(self._settings), self._settings.token,
            httponly=True, samesite="strict", path="/", secure=scope["scheme"] == "https",
        )  # fmt: skip
        return answer

    async def _read(self, scope: Scope, headers: access.Headers, receive: Receive) -> Refusal | None:
        try:
            if scope["path"] in self._uploads:
                scope["state"]["form"], scope["state"]["upload"] = await read_upload(headers, receive)
            else:
                scope["state"]["form"] = await read_fields(headers, receive)
        except BodyRefused as refused:
            return refused.refusal
        return access.check_change(headers, scope["state"]["form"], self._settings)


def _gather(scope: Scope) -> dict[str, list[str]]:
    gathered: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        gathered.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return gathered


def _cookies(headers: access.Headers) -> Mapping[str, str]:
    return {name: value for line in headers.get("cookie", []) for name, value in cookie_parser(line).items()}
