"""Reports on what was done in a task: the calls, and what the last run of a command says.

Everything is quoted from the calls and results of the request.
"""

from collections.abc import Sequence

from offline_model.answer import MOST_PER_KIND, joined, section
from offline_model.calls import HANDS_ON, NOTE_TOOLS, argument, label_of
from offline_model.chat import ChatRequest, Step
from offline_model.deeds import edit_line
from offline_model.outcome import FAIL, MOST_LINES, PASS, TESTS, short, telling
from offline_model.phrases import PHRASES, TITLES, Language
from offline_model.sources import Item, gather
from offline_model.verdict import read_verdict

# How the results of the tools for notes begin, and which sentence leads each in.
OF_NOTES = {
    "Kept as": "noted",
    "A note that says this is there already": "note_twin",
    "Forgotten:": "forgotten",
    "There is no note": "note_gone",
}


def said(step: Step, language: Language) -> str:
    """Return an answer that passes on what a tool said."""
    lead = PHRASES[language][_lead(step)].format(label=label_of(step.call))
    return f"{lead}\n\n{_quoted(step.result.strip().splitlines()[:MOST_LINES])}"


def _lead(step: Step) -> str:
    """Return which sentence leads in what a tool said: about a note, it says in the task's language what happened."""
    if step.call.name not in NOTE_TOOLS:
        return "tool_said"
    return next((lead for begins, lead in OF_NOTES.items() if step.result.startswith(begins)), "tool_said")


def passed_on(steps: Sequence[Step], language: Language) -> str:
    """Return an answer that passes on what other agents answered, word for word."""
    lead = PHRASES[language]["passed_on"]
    return joined([f"{lead.format(label=label_of(s.call))}\n\n{s.result}" for s in steps if s.call.name == HANDS_ON])


def report(request: ChatRequest, language: Language) -> str:
    """Return what was done in the task, what its texts confirm, and what the last run of a command says about it.

    What a summary says of this very task counts as done in it.
    """
    words, steps = PHRASES[language], request.steps
    known = [item for item in gather(request) if item.now]
    before = [item.text for item in known if item.kind in ("file", "done")]
    did = section(words["did"], [*before, *(_line(step, language) for step in steps)])
    found = section(TITLES[language]["confirmed"], _confirmed(known))
    limits = [item.text for item in known if item.kind == "rule" and item.place == "summary"]
    did = joined([did, found, section(words["rules_kept"], limits)])
    runs = [step for step in steps if step.call.name == "bash"]
    if not runs or steps[-1].call.name != "bash":
        # What a check printed comes from a run, and that stands in the request itself.
        no_run = words["no_run_since" if read_verdict(request.task) else "no_run"]
        return joined([no_run, did, said(steps[-1], language)])
    last = runs[-1].result
    passed = bool(PASS.search(last)) and not FAIL.search(last)
    good = words["passes" if TESTS.search(f"{argument(runs[-1].call)}\n{last}") else "passes_other"]
    verdict = good if passed else words["fails"] if FAIL.search(last) else ""
    lines = telling(last) or last.strip().splitlines()[-MOST_LINES:]
    return joined([verdict, did, f"### {words['last_run']}\n\n{_quoted(lines)}"])


def _confirmed(items: Sequence[Item]) -> list[str]:
    # What a program prints or a source file holds is no finding of the task.
    texts = [item for item in items if item.place == "summary" or item.label.startswith("read ")]
    return [item.text for item in texts if item.kind == "confirmed"][:MOST_PER_KIND]


def _line(step: Step, language: Language) -> str:
    call = step.call
    if call.name == "edit":
        return edit_line(call)
    if call.name == "bash":
        return f"`bash` `{argument(call)}`: {' · '.join(telling(step.result)) or short(step.result)}"
    count = PHRASES[language]["lines"].format(count=len(step.result.splitlines()))
    return f"`{call.name}` `{argument(call)}`: {count}"


def _quoted(lines: Sequence[str]) -> str:
    fence = "```"
    return "\n".join([fence, *(line.replace(fence, "'''") for line in lines), fence])
