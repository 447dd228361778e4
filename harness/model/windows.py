"""How large a model's window is: what its server lists, what we know of hosted models, or a careful guess.

Reads a model list that someone else fetched.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# A guess that no current model falls below.
DEFAULT_WINDOW = 8_192
# Hosted models by the beginning of their name; the longest that fits counts. Taken from the providers' pages:
# api-docs.deepseek.com/quick_start/pricing, platform.openai.com/docs/models.
_KNOWN = {
    "deepseek-": 131_072,
    "deepseek-flash": 1_000_000,
    "deepseek-v4": 1_000_000,
    "gpt-3.5-turbo": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 400_000,
    "gpt-5-chat": 128_000,
    "o1": 200_000,
    "o3": 200_000,
    "o4-mini": 200_000,
}
# The most tokens of one reply, from the same pages; of a model that is not here nobody knows it.
_REPLIES = {
    "gpt-3.5-turbo": 4_096,
    "gpt-4-turbo": 4_096,
    "gpt-4o": 16_384,
    "gpt-4.1": 32_768,
    "gpt-5": 128_000,
    "o1": 100_000,
    "o3": 100_000,
    "o4-mini": 100_000,
}
# Where servers put it: vLLM, SGLang; OpenRouter; LM Studio; llama.cpp (inside `meta`, what is in force first).
_NAMES = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx", "n_ctx_train")


@dataclass(frozen=True, slots=True)
class Listed:
    """A model as a server lists it. `window` is in tokens, None if the list does not say."""

    id: str
    window: int | None


def read_list(body: object) -> tuple[Listed, ...]:
    """Return the models in the answer to GET /models; what does not look like one is skipped.

    read_list({"data": [{"id": "m", "max_model_len": 4096}]}) -> (Listed("m", 4096),)
    """
    data = body.get("data") if isinstance(body, Mapping) else body
    models = data if isinstance(data, list) else []
    named = [model for model in models if isinstance(model, Mapping) and isinstance(model.get("id"), str)]
    return tuple(Listed(model["id"], _listed_window(model)) for model in named)


def _listed_window(model: Mapping[str, object]) -> int | None:
    meta = model.get("meta")
    for place in (model, meta if isinstance(meta, Mapping) else {}):
        for name in _NAMES:
            value = place.get(name)
            if type(value) is int and value > 0:
                return value
    return None


def window_of(model: str, listed: tuple[Listed, ...], *, known: bool) -> tuple[int, str]:
    """Return the window in tokens and where it comes from: listed, table or default.

    known: whether the model's name is the provider's own. On another server `gpt-4` can be anything.
    """
    for each in listed:
        if each.id == model and each.window:
            return each.window, "listed"
    if known and (window := _of_name(_KNOWN, model)):
        return window, "table"
    return DEFAULT_WINDOW, "default"


def most_reply(model: str) -> int | None:
    """Return the most tokens that one reply of a hosted model may have; None where nobody knows."""
    return _of_name(_REPLIES, model)


def _of_name(table: Mapping[str, int], model: str) -> int | None:
    fitting = [name for name in table if model.startswith(name)]
    return table[max(fitting, key=len)] if fitting else None
