"""How this server counts. It is the provider, so its rule is its own and simple: four bytes of UTF-8 are one
token, rounded up for the tool list, for each message and for the reply. Knows no tokenizer.
"""

import hashlib
from collections import deque

from offline_model.chat import Reply

BYTES_PER_TOKEN = 4
REMEMBERED = 64


def count(data: bytes) -> int:
    """Return the tokens of `data`: count(b"12345") -> 2."""
    return -(-len(data) // BYTES_PER_TOKEN)


def count_text(text: str) -> int:
    """Return the tokens of `text`."""
    return count(text.encode("utf-8", "surrogatepass"))


def count_reply(reply: Reply) -> int:
    """Return the tokens of a reply: its text, and the name and arguments of each call."""
    return count_text(reply.text) + sum(count_text(call.name + call.arguments) for call in reply.calls)


def shorten(text: str, tokens: int) -> str:
    """Return the start of `text` that fits into `tokens`; no character is cut in two."""
    data = text.encode("utf-8", "surrogatepass")[: max(0, tokens) * BYTES_PER_TOKEN]
    return data.decode("utf-8", "ignore")


class PrefixMemory:
    """Remembers the last requests and tells how much of a new one was sent before, from its start.

    Whole parts are compared (the tool list, then each message), by digest, so that no text is kept.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[bytes, ...]] = deque(maxlen=REMEMBERED)

    def cached(self, parts: tuple[bytes, ...]) -> int:
        """Return the tokens of the longest known prefix of `parts`, and remember `parts`."""
        digests = tuple(hashlib.sha256(part).digest() for part in parts)
        longest = max((_shared(digests, known) for known in self._seen), default=0)
        self._seen.append(digests)
        return sum(count(part) for part in parts[:longest])


def _shared(one: tuple[bytes, ...], other: tuple[bytes, ...]) -> int:
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
