"""The left column: what to try and what was tried, what to have seen and what was seen."""

from dataclasses import dataclass

from harness.discovery import Lab
from harness.proofs import proved
from harness.replay import State
from web.shown import Shown
from web.words import Language


@dataclass(frozen=True, slots=True)
class SampleView:
    """One task to click. `done`: it was run in this session. `next`: the first that was not. `runs`: now."""

    number: int
    id: str
    task: str
    watch: str
    done: bool
    next: bool
    runs: bool


@dataclass(frozen=True, slots=True)
class GroupView:
    """Samples with one learning goal."""

    title: str
    samples: tuple[SampleView, ...]


@dataclass(frozen=True, slots=True)
class TickView:
    """Something to have seen. `by_journal`: the journal ticks it, a person cannot; `seen` is whether it is ticked."""

    id: str
    text: str
    by_journal: bool
    seen: bool


def samples_of(lab: Lab, state: State, language: Language) -> tuple[GroupView, ...]:
    """Return the lab's tasks by group; a sample counts as done when its task was answered."""
    done = {task.sample for task in state.tasks if task.sample and task.ended == "answered"}
    ids = [sample.id for group in lab.groups for sample in group.samples]
    running = state.running_task()
    following = next((sample_id for sample_id in ids if sample_id not in done), "")
    return tuple(
        GroupView(
            in_language(group.title, language),
            tuple(
                SampleView(
                    ids.index(sample.id) + 1,
                    sample.id,
                    in_language(sample.task, language),
                    in_language(sample.watch, language),
                    sample.id in done,
                    sample.id == following,
                    running is not None and sample.id == running.sample,
                )
                for sample in group.samples
            ),
        )
        for group in lab.groups
    )


def ticks_of(session: Shown, language: Language) -> tuple[TickView, ...]:
    """Return what the lab asks to have seen; what the journal can prove is ticked by nothing else."""
    lab, ticked = session.lab, session.state.ticked
    proofs = proved(session.state, session.records) if lab.ticks else frozenset()
    return tuple(
        TickView(
            tick.id,
            in_language(tick.text, language),
            tick.proof is not None,
            tick.id in ticked if tick.proof is None else tick.proof in proofs,
        )
        for tick in lab.ticks
    )


def in_language(text: dict[str, str], language: Language) -> str:
    """Return the words in this language, or in whatever language the lab has them."""
    return text.get(language) or next(iter(text.values()), "")
