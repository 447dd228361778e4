"""Why a model call failed, in kinds that the loop and the page can act on. Pure: it gets the status, the
body and the text of the answer as plain values. Knows nothing of HTTP clients.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Literal

from harness.messages import clean

Kind = Literal[
    "key",
    "overflow",
    "rate_limit",
    "server",
    "connection",
    "timeout",
    "refused",
    "broken_stream",
    "model_missing",
]
# How many characters of the provider's own words are kept.
DETAIL_CHARS = 400
# In seconds: a person waits at the page.
LONGEST_WAIT = 20.0


class ModelError(Exception):
    """No reply. `detail` is the provider's words, bounded and without keys; it never enters the context.

    retry_after: seconds that the provider asks us to wait, if it said so.
    """

    def __init__(self, kind: Kind, detail: str, retry_after: float | None = None) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind: Kind = kind
        self.detail = detail
        self.retry_after = retry_after


_OVERFLOW_CODES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "tokens_limit_reached",
    "string_above_max_length",
}
# The words of OpenAI, DeepSeek, llama.cpp and its Python server, vLLM, SGLang, Ollama, LM Studio, TGI and the
# hosted services; each stands in a test.
_OVERFLOW = re.compile(
    r"maximum context length|max(imum)? (model|prompt|sequence) length|longer than the model's context"
    r"|context (length|size|window)[^.]{0,40}(exceed|overflow|too small)|too long to fit into the model"
    r"|(exceed|overflow|greater than|larger than|longer than)[^.]{0,60}context (length|size|window)"
    r"|context (the )?overflows|prompt (is )?too long|input is too long|too many (input )?tokens"
    r"|input (token count|length)[^.]{0,40}exceed|token limit[^.]{0,20}exceeded"
    r"|reduce the length of the (messages|prompt|input)"
    r"|exceed[^.]{0,20} token limit|exceeds the limit of \d+|prompt exceeds max|range of input length"
    r"|tokens \+ `?max_new_tokens|max_tokens[^.]{0,20} at least 1, got -|exceed max message tokens"
    r"|超过.{0,20}(上下文|最大长度|长度限制|token)|上下文.{0,20}(超|过长)|输入.{0,10}过长",
    re.IGNORECASE,
)
_RATE = re.compile(r"rate.?limit|tokens per (min|day)|requests per (min|day)|\b[tr]pm\b|too many requests", re.I)
_QUOTA = re.compile(r"insufficient.{0,3}(quota|balance|credit|funds)|exceeded your current quota|余额不足", re.I)
_KEY = re.compile(r"api.?key|unauthori[sz]ed|authenticat|credential|token (is )?(invalid|expired)", re.I)
_NO_MODEL = re.compile(
    r"model.{0,80}(not exist|not found|not available|no longer|not supported)|(unknown|no such) model", re.I
)
_SECRET = re.compile(
    r"\bsk-[\w*.-]{4,}|(?i:bearer)\s+\S+|(?i:api[-_ ]?key[\"']?\s*[=:]\s*[\"']?)[\w.*-]{6,}|//[^/\s@]+@"
)


def classify(status: int | None, body: object, text: str = "", *, key: str = "", retry_after: str = "") -> ModelError:
    """Return the error for an answer that is none.

    status: of HTTP, or None for an error that came inside a stream. body: the parsed JSON if it is JSON.
    text: the raw text, used where the body says nothing. key: removed from the detail. retry_after: the
    header of that name, in seconds.
    """
    codes, words = _read(body)
    said = (words or text)[:8000]
    inside = next((int(code) for code in codes if code.isdigit() and 400 <= int(code) < 600), None)
    kind = _kind(inside if status in (None, 200) else status, codes, f"{' '.join(codes)} {said}")
    return ModelError(kind, detail(said or f"status {status}", key), _seconds(retry_after))


def wait_before(error: ModelError, attempt: int) -> float | None:
    """Return the seconds to wait before attempt number `attempt` + 1, or None if asking again is no use."""
    wait = error.retry_after or 0.5 * 2**attempt
    passing = error.kind in ("rate_limit", "server", "connection")
    return wait if passing and wait <= LONGEST_WAIT else None


def _seconds(header: str) -> float | None:
    try:
        seconds = float(header)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _kind(status: int | None, codes: list[str], said: str) -> Kind:
    """Return the kind. What the provider calls it counts before the status, a status before its words."""
    if _OVERFLOW_CODES.intersection(codes):
        return "overflow"
    if _QUOTA.search(said):
        return "refused"
    if status == 401 or (status in (None, 400, 403) and _KEY.search(said)):
        return "key"
    # Before the words of an overflow: "too large … tokens per minute" is none.
    if status == 429 or _RATE.search(said):
        return "rate_limit"
    if _OVERFLOW.search(said):
        return "overflow"
    if "model_not_found" in codes or (status in (None, 400, 403, 404) and _NO_MODEL.search(said)):
        return "model_missing"
    if status is None or status >= 500 or status == 408:
        return "server"
    return "refused"


def _read(body: object) -> tuple[list[str], str]:
    """Return the codes and types in an error body, lower case, and its words."""
    codes: list[str] = []
    words: list[str] = []
    for name, value in _fields(body, 0):
        if name in ("code", "type", "status", "error_code"):
            codes.append(str(value).lower())
        elif isinstance(value, str) and name in ("message", "error", "detail", "msg", "raw", "error_msg", ""):
            words.append(value)
    return codes, " ".join(dict.fromkeys(words))


def _fields(value: object, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the plain values of a body with their names. Proxies wrap a provider's error in their own."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = [("", each) for each in value[:4]]
    for name, inner in items:
        if isinstance(inner, str | int):
            yield str(name), inner
        elif depth < 5:
            yield from _fields(inner, depth + 1)


def detail(text: str, key: str = "") -> str:
    """Return a provider's words as one bounded line, without tags, control characters and keys.

    detail("Incorrect key: sk-abcdef12") -> "Incorrect key: [key]"
    """
    text = clean(text[:8000])
    # A short one is no key but a word that some servers want in its place.
    if len(key) >= 8:
        text = text.replace(key, "[key]")
    text = _SECRET.sub("[key]", text)
    if "<html" in text.lower():
        text = re.sub(r"(?s)<(style|script).*?</\1>|<[^>]*>", " ", text)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= DETAIL_CHARS else line[: DETAIL_CHARS - 1] + "…"
