"""Which skills are in use, and how they stand beside a summary: as they were read, the newest first. Pure.

Their texts are a file's own: each line is quoted, so that none can pass for a line of ours.
"""

from collections.abc import Mapping, Sequence

from harness.context import Entry
from harness.replay import State
from harness.restoring import fits, quoted, skills_read, staying

MOST = 5
# Tokens of each, and of all together.
SKILL_TOKENS = 5_000
SKILLS_TOKENS = 25_000
# Of what is removed half is left to the summary, and so many more to the lines above the skills.
LINES_TOKENS = 100


def skills_beside(state: State, removed: Sequence[Entry], words: Mapping[str, str]) -> str:
    """Return the skills whose text leaves the context with `removed`, or left it before; "" where there is none.

    words: `title`, a line above them; `skill`, one above each; `large`, one in the place of a text that has no room;
    both with {name}. They take less than half of what is removed, so that the summary still frees something.
    """
    stays, freed = staying(state, removed)
    left = min(SKILLS_TOKENS, max(0, freed // 2 - LINES_TOKENS))
    blocks = []
    for name, result in skills_read(state).items():
        if result.call_id in stays or len(blocks) == MOST:
            continue
        text = quoted(result.text)
        size = fits(text, min(SKILL_TOKENS, left))
        left -= size or 0
        shown = " ".join(name.replace("`", "'").split())[:64]
        blocks.append(
            words["large"].format(name=shown) if size is None else f"{words['skill'].format(name=shown)}\n{text}"
        )
    return "\n".join([words["title"], *blocks]) if blocks else ""
