"""Optional fields of a request that one server refuses, learned from its words. Knows nothing of HTTP."""

from harness.model.errors import ModelError
from harness.request import Request, dump

# Some older servers and some hosted ones know no `stream_options`; OpenAI's newer models want the limit on
# the reply under another name, and say so.
_SAID = {"stream_options": "stream_options", "max_tokens": "max_completion_tokens"}


class Adapted:
    """What one server refused so far. `fields` are the names."""

    def __init__(self) -> None:
        self.fields: set[str] = set()

    def learn(self, error: ModelError, request: Request) -> bool:
        """Note the field that `error` names as refused; return whether to send again without it."""
        if error.kind != "refused":
            return False
        sent = request.payload().keys() - self.fields
        refused = {name for name, word in _SAID.items() if name in sent and word in error.detail}
        self.fields |= refused
        return bool(refused)

    def body(self, request: Request) -> bytes:
        """Return the bytes to send: the request's own, byte for byte, unless the server refused a part."""
        if not self.fields:
            return request.body()
        payload = request.payload()
        kept = {name: value for name, value in payload.items() if name not in self.fields}
        if "max_tokens" in payload and "max_tokens" in self.fields:
            kept["max_completion_tokens"] = payload["max_tokens"]
        return dump(kept).encode()
