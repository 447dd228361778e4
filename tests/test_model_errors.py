"""The kinds of failure, from the words of real servers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import DETAIL_CHARS, ModelError, classify, detail, wait_before


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"message": message, **more}


OVERFLOWS = [
    (400, error("Your input exceeds the context window of this model.", code="context_length_exceeded")),
    (400, error("no words that help", code="context_length_exceeded")),
    (400, error("no words that help", type="exceed_context_size_error", code=400, n_ctx=2048)),
    (400, error("request (5031 tokens) exceeds the available context size (2048 tokens), try increasing it")),
    (
        400,
        error(
            "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in "
            "the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
            type="invalid_request_error",
            code="invalid_request_error",
        ),
    ),
    (
        400,
        {"object": "error", "message": "The prompt (total length 9000) is too long to fit into the model", "code": 400},
    ),
    (400, error("The decoder prompt (length 9000) is longer than the maximum model length of 8192.")),
    (400, error("max_tokens must be at least 1, got -31.")),
    (400, error("The input (9000 tokens) is longer than the model's context length (8192 tokens).")),
    (400, error("Requested token count exceeds the model's maximum context length of 8192 tokens.")),
    (400, {"error": "prompt too long; exceeded max context length by 12 tokens"}),
    (400, error("Requested tokens (5000) exceed context window of 2048")),
    (400, {"error": "Trying to keep the first 9000 tokens when context the overflows."}),
    (400, error("The number of tokens to keep is greater than the context length.")),
    (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096", "error_type": "v"}),
    (400, error("prompt is too long: 213462 tokens > 200000 maximum", type="invalid_request_error")),
    (400, error("This model's maximum prompt length is 131072 but the request contains 537812 tokens.")),
    (400, error("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).")),
    (400, [{"error": {"code": 400, "message": "input token count exceeds the maximum", "status": "INVALID"}}]),
    (400, error("invalid params, context window exceeds limit")),
    (400, error("Invalid request: Your request exceeded model token limit: 262144")),
    (400, error("Prompt exceeds max length", code="1261")),
    (400, error("Range of input length should be [1, 129024]")),
    (400, error("Total tokens of image and text exceed max message tokens")),
    (413, error("Please reduce the length of the messages or completion.")),
    (400, {"message": "too many tokens: size limit exceeded by 4000 tokens"}),
    (413, error("Max size: 8000 tokens.", code="tokens_limit_reached")),
    (400, error("输入内容过长，超过模型最大上下文长度")),
    (400, {"detail": '{"error":{"message":"exceeds the available context size","type":"x"}}'}),
    (
        502,
        {
            "error": {
                "message": "Provider returned error",
                "metadata": {"raw": "This model's maximum context length is 9"},
            }
        },
    ),
    (500, error("the request exceeds the available context size. try increasing the context size")),
    (None, error("Context size has been exceeded.", code=500, type="server_error")),
]


@pytest.mark.parametrize(("status", "body"), OVERFLOWS)
def test_overflow_in_every_form(status: int | None, body: Any) -> None:
    assert classify(status, body).kind == "overflow"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, error("Authentication Fails (no such user)", type="authentication_error"), "key"),
        (401, None, "key"),
        (400, error("API key not valid. Please pass a valid API key."), "key"),
        (403, error("Your credentials were not accepted"), "key"),
        (403, error("Country, region, or territory not supported"), "refused"),
        (402, error("Insufficient Balance", code="invalid_request_error"), "refused"),
        (429, error("You exceeded your current quota, please check your plan", code="insufficient_quota"), "refused"),
        (429, error("Rate limit reached for requests"), "rate_limit"),
        (429, error("Request too large for model on tokens per min (TPM): Limit 6000, Requested 9000"), "rate_limit"),
        (413, error("Request too large on tokens per minute (TPM)", code="rate_limit_exceeded"), "rate_limit"),
        (None, error("slow down", code=429), "rate_limit"),
        (404, error("The model `x` does not exist or you do not have access", code="model_not_found"), "model_missing"),
        (400, error("Model Not Exist", type="invalid_request_error"), "model_missing"),
        (404, {"error": 'model "x" not found, try pulling it first'}, "model_missing"),
        (404, {"detail": "Not Found"}, "refused"),
        (400, error("max_tokens is too large: 99999. This model supports at most 16384 completion tokens"), "refused"),
        (400, error("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), "refused"),
        (400, error("An assistant message with 'tool_calls' must be followed by tool messages"), "refused"),
        (422, error("Extra inputs are not permitted: stream_options"), "refused"),
        (500, error("Internal error"), "server"),
        (503, error("Loading model", type="unavailable_error"), "server"),
        (529, error("Overloaded"), "server"),
        (None, error("The server had an error"), "server"),
        (None, error("Upstream died", code=502), "server"),
        (None, "boom", "server"),
    ],
)
def test_the_other_kinds(status: int | None, body: Any, kind: str) -> None:
    assert classify(status, body).kind == kind


def test_words_come_from_the_body_or_else_from_the_text() -> None:
    assert classify(400, {"error": {"message": "No such tool", "code": 400}}).detail == "No such tool"
    assert classify(502, None, "<html><head><style>b{}</style></head><h1>502 Bad</h1></html>").detail == "502 Bad"
    assert classify(500, None).detail == "status 500"
    assert str(ModelError("server", "down")) == "server: down"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect key: sk-abcdef12.", "Incorrect key: [key]"),
        ("Your api key: ****cdef is invalid", "Your [key] is invalid"),
        ("header Authorization: Bearer abc.def-1 refused", "header Authorization: [key] refused"),
        ("no route to http://user:pass@host/v1", "no route to http:[key]host/v1"),
        ("the word my-own-secret stands here", "the word [key] stands here"),
        ("two\nlines\x00\u202e and\ttabs", "two lines and tabs"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_detail_is_one_line_without_keys(text: str, shown: str) -> None:
    assert detail(text, "my-own-secret") == shown


def test_a_word_in_place_of_a_key_is_not_hidden() -> None:
    assert detail("none of these", "none") == "none of these"


def test_retry_after_is_read_and_decides() -> None:
    assert classify(429, None, retry_after="1.5").retry_after == 1.5
    for odd in ("", "soon", "inf", "nan", "-3", "0"):
        assert classify(429, None, retry_after=odd).retry_after is None
    assert wait_before(ModelError("server", ""), 1) == 1.0
    assert wait_before(ModelError("server", ""), 2) == 2.0
    assert wait_before(ModelError("rate_limit", "", 7.0), 1) == 7.0
    assert wait_before(ModelError("rate_limit", "", 70.0), 1) is None
    for kind in ("key", "overflow", "timeout", "refused", "broken_stream", "model_missing"):
        assert wait_before(ModelError(kind, ""), 1) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["error", "code", "message", "x"]), inner),
)


@given(st.none() | st.integers(100, 599), JSON, st.text())
def test_any_answer_gives_a_bounded_error(status: int | None, body: Any, text: str) -> None:
    found = classify(status, body, text)
    assert len(found.detail) <= DETAIL_CHARS and "\n" not in found.detail
    found.detail.encode()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("word", ["model ", "exceed ", "max_tokens", "<", "api key:", "context length ", "<style"])
def test_a_long_answer_does_not_hang_it(word: str) -> None:
    found = classify(400, {"error": {"message": word * 100_000}}, word * 100_000)
    assert len(found.detail) <= DETAIL_CHARS
