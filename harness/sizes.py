"""How large a thing is, in units that are never mixed.

`chars` are characters of JSON, `tokens` are our own estimate, and only `Usage` holds tokens that a
provider counted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

Category = Literal["system", "tools", "summary", "user", "assistant", "results"]
CATEGORIES: tuple[Category, ...] = ("system", "tools", "summary", "user", "assistant", "results")


@dataclass(frozen=True, slots=True)
class Size:
    """How large a part of a request is: characters of its JSON, and estimated tokens."""

    chars: int = 0
    tokens: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(self.chars + other.chars, self.tokens + other.tokens)

    def __sub__(self, other: "Size") -> "Size":
        return Size(self.chars - other.chars, self.tokens - other.tokens)


class Sized(Protocol):
    """Anything that has a size, such as a message of the context."""

    @property
    def size(self) -> Size: ...


def size_of(parts: Iterable[Sized]) -> Size:
    """Return the size of several parts together; none of them is no size."""
    sizes = [part.size for part in parts]
    return Size(sum([size.chars for size in sizes]), sum([size.tokens for size in sizes]))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider reported them. None: it did not say, which is not zero.

    prompt_ms: how long the model took to read the prompt, in milliseconds; llama.cpp's server says so.
    """

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    prompt_ms: float | None = None
