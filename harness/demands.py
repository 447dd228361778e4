"""What users demanded or forbade, word for word: kept beside a summary, so that no summariser can lose it.

Only what a person wrote counts. A demand is a sentence with a word such as "must", "only", "do not".
"""

from collections.abc import Iterable, Sequence

from harness.context import Entry
from harness.facts.extract import demands_in, sentence_key


def demands_of(entries: Iterable[Entry], earlier: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the demands in the users' messages of `entries` behind the `earlier` ones, each once, in order."""
    found = {sentence_key(text): text for text in earlier}
    for entry in entries:
        for fact in demands_in(entry.message.text) if entry.demands is None else entry.demands:
            found.setdefault(fact.key, fact.text)
    return tuple(found.values())


def demands_block(title: str, demands: Sequence[str], summary: str) -> str:
    """Return the lines that stand beside `summary`: those demands that are not in it word for word; "" for none."""
    missing = [demand for demand in demands if demand not in summary]
    return "\n".join([title, *(f"- {demand}" for demand in missing)]) if title and missing else ""
