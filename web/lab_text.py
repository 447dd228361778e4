"""A lab's text as the page shows it: sections, and at the end a question whose answer is folded away."""

import re
from dataclasses import dataclass, field

from harness.discovery import Lab
from web.lab_tables import filled
from web.markdown import split_sections
from web.words import Words

_TITLE = re.compile(r"\A# .*\n?")
_DETAILS = re.compile(r"<details>\s*<summary>(?P<title>.*?)</summary>(?P<body>.*?)</details>", re.DOTALL)
_SUBHEADING = re.compile(r"^### (?P<title>.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the text: its heading, perhaps empty, and its Markdown."""

    title: str
    body: str


@dataclass(frozen=True, slots=True)
class LabText:
    """The text without its title; `answer` is what the reader should think about first, or None."""

    sections: tuple[Section, ...]
    answer: Section | None


@dataclass(frozen=True, slots=True)
class LabTexts:
    """The texts that were read so far, one for each lab and language, since they stay the same while a server runs."""

    _read: dict[tuple[str, str], LabText] = field(default_factory=dict)

    def of(self, lab: Lab, words: Words) -> LabText:
        """Return the lab's text in the language of `words`; it is read from the file the first time only."""
        key = (str(lab.folder), words.language)
        if key not in self._read:
            self._read[key] = read_lab_text(filled(lab.text(words.language), words))
        return self._read[key]


def read_lab_text(text: str) -> LabText:
    """Take the answer out of the last section: a <details> in it, or what stands under a heading of level 3."""
    parts = split_sections(_TITLE.sub("", text.strip()))
    sections = [Section(title, body) for title, body in parts if title or body]
    if not sections:
        return LabText((), None)
    question, answer = _split_answer(sections[-1])
    return LabText((*sections[:-1], question), answer)


def _split_answer(section: Section) -> tuple[Section, Section | None]:
    found = _DETAILS.search(section.body)
    if found:
        rest = section.body[: found.start()] + section.body[found.end() :]
        return Section(section.title, rest.strip()), Section(found["title"].strip(), found["body"].strip())
    found = _SUBHEADING.search(section.body)
    if found:
        answer = Section(found["title"].strip(), section.body[found.end() :].strip())
        return Section(section.title, section.body[: found.start()].strip()), answer
    return section, None
