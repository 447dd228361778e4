"""What extensions changed in a request on its way (`before_send`), told so that the request can be rebuilt.

A projection changes one request; history and context stay as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from harness.request import Request, Wire, dump
from harness.sizes import Category, Size
from harness.tokens import size_of_message

# The messages of a request, in order: the first and last place of neighbours that stand in the context's request, or
# one message that does not.
Message = TypeVar("Message")
Part = tuple[int, int] | dict[str, Any]
_CATEGORIES: Mapping[str, Category] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "results"}


def given(base: Request) -> Request:
    """Return the request as a hook gets it: with messages of its own, so that a careless one changes no history."""
    return replace(base, messages=tuple(dict(message) for message in base.messages))


def describe(base: Request, handed: Request, sent: Request) -> tuple[Part, ...]:
    """Return how `sent` is made of `base`; () where they have the same messages. handed: what the first hook got.

    Raises ValueError where more than the messages was changed, or a message is none.
    """
    if (sent.model, sent.tools, sent.max_tokens, sent.extra) != (base.model, base.tools, base.max_tokens, base.extra):
        raise ValueError("before_send may change messages only")
    if sent.messages == base.messages:
        return ()
    whole = zip(handed.messages, base.messages, strict=True)
    places = {id(own): place for place, (own, message) in enumerate(whole) if own == message}
    parts: list[Part] = []
    for message in sent.messages:
        place = places.get(id(message))
        last = parts[-1] if parts else None
        if place is None:
            dump(message).encode()
            if message["role"] not in _CATEGORIES:
                raise ValueError(f"there is no role {message['role']!r}")
            parts.append(message)
        elif isinstance(last, tuple) and last[1] == place - 1:
            parts[-1] = (last[0], place)
        else:
            parts.append((place, place))
    return tuple(parts)


def project(messages: Sequence[Message], parts: Sequence[Part]) -> tuple[Message | Wire, ...]:
    """Return the messages that were sent, from those of the context's request and what `describe` returned."""
    if not parts:
        return tuple(messages)
    found: list[Message | Wire] = []
    for part in parts:
        found += messages[part[0] : part[1] + 1] if isinstance(part, tuple) else [part]
    return tuple(found)


def category_of(message: Wire) -> Category:
    """Return the part of a request that a message on the wire belongs to."""
    return _CATEGORIES[message["role"]]


def project_sizes(
    totals: Mapping[Category, Size], places: Sequence[tuple[Category, Size]], parts: Sequence[Part]
) -> dict[Category, Size]:
    """Return the request's size by category. totals: of the context's request; places: of each of its messages."""
    if not parts:
        return dict(totals)
    sizes: dict[Category, Size] = {"tools": totals["tools"]} if "tools" in totals else {}
    for part in parts:
        own = [] if isinstance(part, tuple) else [(category_of(part), size_of_message(part))]
        for category, size in places[part[0] : part[1] + 1] if isinstance(part, tuple) else own:
            sizes[category] = sizes.get(category, Size()) + size
    return sizes
