"""What counting new text costs against tiktoken alone, and that no message is encoded twice.

Run it with `uv run python -m bench.count_cost`. Speed: characters a second of CPU of `count`, and of `size_of_message`,
which also writes the JSON, against tiktoken's own `encode_ordinary` on the same texts. Aim: 0.8. Twice: every call of
`count` is written down while labs run turns of the real loop with nothing to be done, and while they cut; a text of a
message that is encoded again ends the bench. What the summariser reads is a text of its own, and is not looked at here.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from bench.call_overhead import ours as turns_of
from bench.conversation import INSTRUCTIONS, Conversation, labs, settings_of
from bench.cut_cost import ours as cut_of
from harness import tokens
from harness.discovery import Lab
from harness.request import Wire

MESSAGES = 4_000
TURNS = 20
# What may come twice: a copied session measures its instructions anew.
NO_MESSAGE = (INSTRUCTIONS,)


@contextmanager
def written_down() -> Iterator[Counter[str]]:
    """Write down every text that is encoded."""
    texts: Counter[str] = Counter()
    count = tokens.count

    def counted(text: str) -> int:
        texts[text] += 1
        return count(text)

    with patch.object(tokens, "count", counted):
        yield texts


def texts_of(wire: Wire) -> list[str]:
    """Return the texts of one message that a tokenizer must read."""
    calls = [call["function"] for call in wire.get("tool_calls", ())]
    return [wire["content"], *(text for call in calls for text in (call["name"], call["arguments"]))]


def speeds(wires: list[Wire], repeats: int = 5) -> list[float]:
    """Return characters a second of CPU: of tiktoken alone, of our counting, and of measuring whole messages."""
    texts = [text for wire in wires for text in texts_of(wire)]
    ways = ((tokens.encoding().encode_ordinary, texts), (tokens.count, texts), (tokens.size_of_message, wires))
    times: list[list[float]] = [[], [], []]
    for _ in range(repeats):
        for (way, given), taken in zip(ways, times, strict=True):
            began = time.process_time()
            for each in given:
                way(each)  # type: ignore[operator]
            taken.append(time.process_time() - began)
    return [sum(map(len, texts)) / min(taken) for taken in times]


def encoded(lab: Lab, messages: int, turns: int) -> int:
    """Return how many texts a session of `lab` encoded in turns, and another in a cut; each once, or it ends here."""
    found = 0
    for run in (lambda: asyncio.run(turns_of(lab, messages, turns)), lambda: cut_of(lab, messages, 1)):
        with written_down() as texts:
            run()
        twice = [text for text, times in texts.items() if times > 1 and not text.startswith(NO_MESSAGE)]
        assert not twice, f"encoded again: {twice[0][:200]!r}"
        found += len(texts)
    return found


def main(messages: int = MESSAGES, turns: int = TURNS) -> None:
    """Print the speeds and their ratio to tiktoken's, and how many texts were encoded, each once."""
    lab = next(iter(labs().values()))
    conversation = Conversation(lab, settings_of(lab)).grow(messages)
    found = speeds([entry.wire for entry in conversation.state.history])
    for name, each in zip(("tiktoken alone", "a text, counted", "a message, with its JSON"), found, strict=True):
        print(f"{name:<36}{each / 1e6:10.2f} million characters a second of CPU, ratio {each / found[0]:.2f}")
    for number, each in labs().items():
        print(
            f"{f'lab {number}':<36}{encoded(each, min(messages, 1_000), turns):10,} texts encoded, none of them twice"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
