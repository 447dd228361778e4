"""Estimates tokens with tiktoken's `o200k_base`, from the rank file beside this module.

Knows nothing of providers: what it returns is our own estimate and is labelled so wherever it is shown.
"""

import base64
import functools
import gzip
import hashlib
from pathlib import Path

import tiktoken

from harness.request import Wire, dump
from harness.sizes import Size

ENCODING = "o200k_base"
RANKS = Path(__file__).with_name("o200k_base.tiktoken.gz")
# The hash that tiktoken's own `openai_public.py` gives for this file.
RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
# tiktoken's pattern for o200k_base (tiktoken 0.14, `openai_public.py`); a test holds it to that source.
_LOWER_END = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
_UPPER_END = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join([
    _LOWER_END + _ENDING,
    _UPPER_END + _ENDING,
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
])  # fmt: skip
SPECIAL_TOKENS = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}

# What the chat format adds to each message: its start, the role, the separator and the end.
MESSAGE_TOKENS = 4
# A picture counts the same however large its file is, since providers count its area and not its base64. The value is
# opencode's (V2, `session/compaction.ts`).
IMAGE_TOKENS = 1_500
# tiktoken panics on a run of about a million blanks, so long text is counted in pieces (characters).
# A border costs a few tokens in 100,000: measured +10 of 189,156 on source code.
PIECE_CHARS = 100_000


class RanksDamaged(Exception):
    """The shipped rank file is missing or not the one that its hash names."""


@functools.cache
def encoding() -> tiktoken.Encoding:
    """Load the encoding once, from the repository and never from the network; about half a second of CPU."""
    try:
        data = gzip.decompress(RANKS.read_bytes())
    except (OSError, EOFError) as error:
        raise RanksDamaged(f"`{RANKS.name}` cannot be read: {error}. Restore it from the repository.") from error
    if hashlib.sha256(data).hexdigest() != RANKS_SHA256:
        raise RanksDamaged(f"`{RANKS.name}` is not the file it should be. Restore it from the repository.")
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, data.splitlines())}
    return tiktoken.Encoding(ENCODING, pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=SPECIAL_TOKENS)


def count(text: str) -> int:
    """Return the estimated tokens of `text`: count("context") -> 1. Markup such as <|endoftext|> is text."""
    encode = encoding().encode_ordinary
    if len(text) <= PIECE_CHARS:
        return len(encode(text))
    return sum(len(encode(text[i : i + PIECE_CHARS])) for i in range(0, len(text), PIECE_CHARS))


def size_of_message(wire: Wire) -> Size:
    """Return how large one message is on the wire; call names, arguments and thoughts count too."""
    content = wire["content"]
    # Beside calls there may be no text.
    found = MESSAGE_TOKENS + (count(content or "") if not isinstance(content, list) else _count_parts(content))
    if "reasoning_content" in wire:
        found += count(wire["reasoning_content"])
    for call in wire.get("tool_calls", ()):
        function = call["function"]
        found += _count_name(function["name"]) + count(function["arguments"])
    return Size(len(dump(wire)), found)


def _count_parts(parts: list[Wire]) -> int:
    """Return the tokens of a content of several parts, which only an extension's projection has: texts and pictures."""
    return sum(count(part["text"]) if part["type"] == "text" else IMAGE_TOKENS for part in parts)


@functools.lru_cache(maxsize=100)
def _count_name(name: str) -> int:
    """Return the tokens of a tool's name, which comes again in every call."""
    return count(name)


def size_of_text(text: str) -> Size:
    """Return how large a part of a message's text is: characters as in JSON, and tokens of it alone."""
    return Size(len(dump(text)) - len('""'), count(text) if text else 0)


def size_of_tools(tools: tuple[Wire, ...]) -> Size:
    """Return how large the tool definitions are, counted as their JSON."""
    text = dump(list(tools))
    return Size(len(text), count(text)) if tools else Size()
