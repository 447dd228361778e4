"""Keeps a text that somebody else wrote from opening or closing one of the tags that we put around such texts. Pure."""

import re
import unicodedata

# The names of our tags, without what is no letter.
_NAMES = ("projectinstructions", "checkoutput")
# Also the wide and the small sign, which a model may read as the same.
_OPENS = re.compile(r"[<\uff1c\ufe64]([^<>\uff1c\ufe64\uff1e\ufe65]*)")


def escape_tags(text: str) -> str:
    """Return the text with `&lt;` for each `<` that has the name of one of our tags before the next `<` or `>`.

    Signs between the letters of the name, other letters before it and other forms of the same letters do not hide it.
    All other markup stays as it was written.
    """
    return _OPENS.sub(lambda found: f"&lt;{found[1]}" if _names_ours(found[1]) else found[0], text)


def printable(text: str) -> str:
    """Return the text with a mark for each character that does not show itself, such as a line's end."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _names_ours(text: str) -> bool:
    letters = "".join(char for char in unicodedata.normalize("NFKD", text).casefold() if char.isalnum())
    return any(name in letters for name in _NAMES)
