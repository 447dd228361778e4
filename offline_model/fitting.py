"""Finds which of several listed places of a request fits what is asked, by their words. Knows nothing of scripts."""

import re
from collections.abc import Mapping

from offline_model.chat import ChatRequest
from offline_model.questions import each_question
from offline_model.words import rank

# This share of the weight of a question's words must stand in one place.
ENOUGH = 0.4


# One line of a list of notes.
NOTE = re.compile(r"^\s*- \[[^\]\n]+\]\([^)\n]+\.md\).*$", re.MULTILINE)


def fitting(pattern: re.Pattern[str] | None, request: ChatRequest, question: str) -> Mapping[str, str | None] | None:
    """Return the groups of the place that fits a question best, or None where none does; without a pattern none is
    looked for. Only what stands in a system message or beside a summary is a list of the client's.
    """
    if not pattern:
        return {}
    texts = (turn.text for turn in request.turns if turn.role == "system" or turn.background)
    places = [found for text in texts for found in pattern.finditer(text)]
    best = (0.0, 0)
    for asked in each_question(question) if places else ():
        match = rank(asked, [found.group() for found in places])[0]
        best = max(best, (match.covered, -match.index))
    return places[-best[1]].groupdict() if best[0] >= ENOUGH else None
