"""The tokens that a provider reports, in the two forms that they come in. Estimates nothing."""

from harness.sizes import Usage


def read_usage(raw: object) -> Usage:
    """Return the tokens in a `usage` object, either OpenAI's or DeepSeek's; missing or zero is None.

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
    return Usage(prompt, completion, cached if known else None)


def _count(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
