"""The parts of the system prompt: where each came from, and what was wrong with it.

An extension's `system_prompt` may return these in place of one text. What is joined remembers where each part stands,
so that the page can show what each costs.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from harness.messages import clean
from harness.session_events import SourceKind, Told

# What stands between two parts.
GAP = "\n\n"
# How long a name and a detail may be, in characters, and how many parts are told that add nothing but a problem.
LONGEST, MOST_PROBLEMS = 200, 40
# So many files are asked about at once, and the others after them: a yes covers nothing that was not shown.
MOST_ASKED = 6


@dataclass(frozen=True, slots=True)
class Source:
    """One part of the system prompt.

    kind: of several with the kind "body" the last one stands. name: what it is called, such as its file. text: what
    is sent, "" for nothing. problem: a code that the catalogue explains, where something was wrong with it, and
    detail: the words that its line needs. wanted: what would be sent or run, word for word, once a person accepts it
    (problem "untrusted"). needs: names of tools that it counts on; one that is not there is a problem.
    """

    kind: SourceKind
    name: str
    text: str
    problem: str = ""
    detail: str = ""
    needs: tuple[str, ...] = ()
    wanted: str = ""


def checked(source: Source, tools: Container[str]) -> Source:
    """Return the source, with a problem where nothing else is wrong but that a tool is not there that it counts on."""
    missing = ", ".join(name for name in source.needs if name not in tools)
    return replace(source, problem="tool_missing", detail=missing) if missing and not source.problem else source


def sources_of(extension: str, given: str | Iterable[Source]) -> list[Source]:
    """Return what a `system_prompt` hook gave as sources; a plain text is one, with the extension's name."""
    if isinstance(given, str):
        return [Source("extension", extension, given)]
    return list(given)


def joined(sources: Sequence[Source]) -> tuple[str, tuple[Told, ...]]:
    """Return the system prompt, a blank line between its parts, and where in it each stands."""
    bodies = [each for each in sources if each.kind == "body" and each.text.strip()]
    system, told = "", []
    for each in sources:
        text = clean(str(each.text)).strip()
        replaced = each.kind == "body" and each is not bodies[-1] if bodies else False
        if text and not replaced:
            system += GAP if system else ""
            start, system = len(system), system + text
        else:
            start = len(system)
        problem = each.problem or ("replaced" if replaced else "")
        # What adds nothing and has nothing wrong with it is no source.
        if text or problem:
            names = clean(each.name)[:LONGEST], clean(each.detail)[:LONGEST]
            told.append(Told(each.kind, names[0], start, len(system), problem, names[1], clean(each.wanted)))
    return system, _bounded(told)


def _bounded(told: Sequence[Told]) -> tuple[Told, ...]:
    """Return what is told, without the problems that are too many to read: how many those are is one more."""
    bare = [each for each in told if each.start == each.end]
    bare.sort(key=lambda each: each.problem != "untrusted")
    asked, over = {id(each) for each in bare[:MOST_ASKED]}, {id(each) for each in bare[MOST_PROBLEMS:]}
    kept = [
        each if id(each) in asked or not each.wanted else replace(each, wanted="")
        for each in told if id(each) not in over
    ]  # fmt: skip
    if over:
        end = kept[-1].end
        kept.append(Told(bare[-1].kind, "…", end, end, "problems_many", str(len(over))))
    return tuple(kept)
