"""The left column: what to try, what was tried, and the lab's text."""

from dataclasses import dataclass

from harness.discovery import Lab
from harness.replay import State
from web.lab_text import LabText, read_lab_text
from web.words import Language


@dataclass(frozen=True, slots=True)
class SampleView:
    """One task to click. `done`: it was run in this session. `next`: the first that was not."""

    number: int
    id: str
    task: str
    watch: str
    done: bool
    next: bool


@dataclass(frozen=True, slots=True)
class GroupView:
    """Samples with one learning goal."""

    title: str
    samples: tuple[SampleView, ...]


@dataclass(frozen=True, slots=True)
class Guide:
    """What the left column shows, in one language."""

    goal: str
    groups: tuple[GroupView, ...]
    text: LabText


def guide_of(lab: Lab, state: State, language: Language) -> Guide:
    """Build the left column; a sample counts as done when its task has ended."""
    done = {task.sample for task in state.tasks if task.sample and task.ended}
    ids = [sample.id for group in lab.groups for sample in group.samples]
    following = next((sample_id for sample_id in ids if sample_id not in done), "")
    groups = tuple(
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
                )
                for sample in group.samples
            ),
        )
        for group in lab.groups
    )
    return Guide(in_language(lab.goal, language), groups, read_lab_text(lab.text(language)))


def in_language(text: dict[str, str], language: Language) -> str:
    """Return the words in this language, or in whatever language the lab has them."""
    return text.get(language) or next(iter(text.values()), "")
