"""Checks the key and the model: which one answers and why, by one tiny call through the real gateway."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from harness.doctor.result import Grade, Result
from harness.model.errors import ModelError
from harness.model.gateway import Gateway
from harness.model.provider import NO_KEY, Provider
from harness.model.reply import Reply
from harness.problems import Problem
from harness.request import Request

# A hosted model answers this in a second or two; a file is loaded first.
SECONDS = 8.0
LOADING_SECONDS = 60.0
CONNECT_SECONDS = 5.0
# A model that thinks before it speaks needs room for that.
MOST_TOKENS = 64
QUESTION = {"role": "user", "content": "Say ok."}
# What a failure becomes; every other kind is a refusal.
FAILED: dict[str, tuple[str, Grade]] = {
    "key": ("model_key", "mend"),
    "rate_limit": ("model_rate_limit", "look"),
    "server": ("model_server", "look"),
    "connection": ("model_connection", "mend"),
    "timeout": ("model_late", "mend"),
    "model_missing": ("model_unknown", "mend"),
}

Choose = Callable[[], Provider]
# Starts a model that runs here, and ends it again.
Opened = Callable[[], AbstractAsyncContextManager[Provider]]


def key(choose: Choose) -> Result:
    """Say which key is used, never what it is."""
    provider = choose()
    if provider.kind == "offline":
        return Result("key_none", "good")
    if provider.api_key == NO_KEY:
        return Result("key_not_needed", "good")
    name = "DEEPSEEK_API_KEY" if provider.kind == "deepseek" else "OPENAI_API_KEY"
    return Result("key_set", "good", {"name": name, "address": provider.base_url})


def model(choose: Choose, opened: Opened, seconds: float) -> Result:
    """Ask the model for one word, for at most `seconds`."""
    try:
        provider = choose()
    except Problem:
        return Result("model_not_asked", "look")
    # `asyncio.run` would wait for the look-up of a name that hangs, in a thread that cannot be ended.
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_asked(provider, opened, seconds))
    finally:
        loop.close()


async def _asked(provider: Provider, opened: Opened, seconds: float) -> Result:
    name = provider.model or provider.base_url
    # The client library takes a second to load, on a busy machine several; that is no time of the model's.
    loading = Gateway(provider)
    await loading.prepare()
    await loading.close()
    try:
        async with asyncio.timeout(seconds), opened() as running:
            reply = await _call(running, seconds)
    except TimeoutError:
        return Result("model_late", "mend", {"model": name, "n": round(seconds)})
    except ModelError as error:
        code, grade = FAILED.get(error.kind, ("model_refused", "mend"))
        return Result(code, grade, {"model": name, "n": round(seconds), "detail": error.detail})
    return Result("model_good", "good", {"model": running.model, "why": running.reason, "seconds": reply.seconds})


async def _call(provider: Provider, seconds: float) -> Reply:
    gateway = Gateway(provider, connect_seconds=CONNECT_SECONDS, stall_seconds=seconds, retries=0)
    try:
        request = Request(provider.model, (QUESTION,), max_tokens=MOST_TOKENS)
        return await gateway.stream(request, lambda text, kind: None)
    finally:
        await gateway.close()
