"""The tokens that a provider reports, in the two forms that they come in. Estimates nothing."""

import math

from harness.sizes import Usage


def read_usage(raw: object, timings: object = None) -> Usage:
    """Return the tokens in a `usage` object, either OpenAI's or DeepSeek's; missing or zero is None.

    timings: what llama.cpp's server tells beside it.

    read_usage({"prompt_tokens": 9, "completion_tokens": 0}) -> Usage(prompt=9)
    """
    if not isinstance(raw, dict):
        return Usage()
    prompt, completion = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens"))
    details = raw.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    cached = raw.get("prompt_cache_hit_tokens") if cached is None else cached
    # Nothing cached is a fact, but only from a provider that counts at all.
    known = prompt is not None and type(cached) is int and 0 <= cached <= prompt
    taken = timings.get("prompt_ms") if isinstance(timings, dict) else None
    sure = type(taken) in (int, float) and math.isfinite(taken) and taken >= 0
    return Usage(prompt, completion, cached if known else None, float(taken) if sure else None)


def _count(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
