"""Reads a file that somebody else wrote, as text of a bounded length; whatever is wrong with it becomes a code.

Never waits for a pipe, and follows a link only as far as the caller allows. Blocking: callers run it in a thread.
"""

import codecs
import errno
import os
from dataclasses import dataclass
from pathlib import Path

from harness.coding_tools.text_file import NotText, detect_encoding, open_regular, why
from harness.workspace import is_protected

MOST_BYTES = 32_768
CUT = "[Cut here: the file has {size:,} bytes, and only what stands above was read.]"


@dataclass(frozen=True, slots=True)
class Read:
    """What was read. problem: a code of the catalogue's `source_problem`, or ""; detail: what its line needs."""

    text: str
    problem: str = ""
    detail: str = ""


def is_there(path: Path) -> bool:
    """Whether there is something of this name, be it a link that leads nowhere."""
    return os.path.lexists(path)


def read(path: Path, within: Path | None) -> Read:
    """Return the text of a file, cut at the end of a line where it has more than MOST_BYTES.

    within: the folder that links may not lead out of; None: wherever they lead.
    """
    try:
        real = path.resolve(strict=True)
        if within and not real.is_relative_to(within.resolve()):
            return Read("", "outside")
        inside = real.relative_to(within.resolve()).parts if within else (real.name,)
        if any(map(is_protected, inside)):
            return Read("", "protected")
        if not real.is_file():
            return Read("", "no_file")
        with open_regular(real) as stream:
            data = stream.read(MOST_BYTES + 1)
            size = max(os.fstat(stream.fileno()).st_size, len(data))
    except (OSError, RuntimeError, ValueError) as error:
        return _unreadable(error)
    text = _decoded(data[:MOST_BYTES], whole=len(data) <= MOST_BYTES)
    if text is None:
        return Read("", "encoding")
    text = text.replace("\r\n", "\n")
    if len(data) <= MOST_BYTES:
        return Read(text)
    kept = text[: text.rfind("\n") + 1] or text + "\n"
    return Read(kept + CUT.format(size=size), "too_large", f"{size:,}")


def _unreadable(error: Exception) -> Read:
    # A loop of links is a RuntimeError before Python 3.13.
    if isinstance(error, RuntimeError) or getattr(error, "errno", 0) == errno.ELOOP:
        return Read("", "link_loop")
    return Read("", "unreadable", why(error))


def _decoded(data: bytes, *, whole: bool) -> str | None:
    """Return the bytes as text, a last character that was cut left out; None where the encoding is not sure."""
    try:
        encoding = detect_encoding(data, whole=whole)
        if not encoding.sure:
            return None
        return codecs.getincrementaldecoder(encoding.name)().decode(data[len(encoding.mark) :], whole)
    except (NotText, UnicodeError):
        return None
