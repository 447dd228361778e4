"""Text in files: which encoding, which line ends, and how to write it back the same way.

Knows nothing of tools or of which files may be touched.
"""

import codecs
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

SAMPLE_BYTES = 262_144
# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COMMON_CHINESE = 0.9


@dataclass(frozen=True, slots=True)
class Encoding:
    """How bytes become text. mark: the byte-order mark at the start. sure: False for a guess."""

    name: str
    mark: bytes = b""
    sure: bool = True

    def note(self) -> str:
        """Return what a reader must know about the text, or "" for plain UTF-8."""
        if not self.sure and self.name == "utf-8":
            return "Bytes that are not UTF-8 are shown as U+FFFD."
        if not self.sure:
            return f"Read as {self.name}, which is assumed: the file does not say."
        return "" if self.name == "utf-8" else f"The encoding is {self.name}."


class NotText(Exception):
    """The bytes are binary, or they cannot be changed without damage."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """The whole text of a file, its line ends as they are."""

    text: str
    encoding: Encoding

    def to_bytes(self, text: str) -> bytes:
        """Return `text` as the bytes of this file, with its encoding and mark."""
        return self.encoding.mark + text.encode(self.encoding.name)

    @property
    def has_crlf(self) -> bool:
        """Whether most lines end in CR LF."""
        return self.text.count("\r\n") * 2 > self.text.count("\n")


def detect_encoding(sample: bytes, *, whole: bool) -> Encoding:
    """Return the encoding of a file that starts with `sample`; `whole` says that this is all of it.

    detect_encoding("你好".encode("gb18030"), whole=True) -> Encoding("gb18030", sure=False)
    Raises NotText for binary data.
    """
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return Encoding(name, mark)
    if b"\0" in sample:
        raise NotText("binary")
    if _decodes(sample, "utf-8", whole=whole) is not None:
        return Encoding("utf-8")
    text = _decodes(sample, "gb18030", whole=whole)
    if text is not None and _looks_chinese(text):
        return Encoding("gb18030", sure=False)
    return Encoding("utf-8", sure=False)


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading without following a link or waiting for a pipe.

    Raises OSError, also where it is no regular file (IsADirectoryError for a folder).
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if path.is_dir():
        raise IsADirectoryError(f"{path.name} is a folder")
    if not stat.S_ISREG(path.lstat().st_mode):
        raise OSError("it is a pipe, a socket or a device")
    stream = open(os.open(path, flags), "rb")  # noqa: SIM115
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return stream
    stream.close()
    raise OSError("it is a pipe, a socket or a device")


def load(path: Path, limit: int) -> TextFile:
    """Read a whole file of at most `limit` bytes, where every byte can be written back as it was.

    Raises OSError, and NotText for a file that is too big, binary, or damaged.
    """
    with open_regular(path) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise NotText(f"bigger than {limit:,} bytes")
    encoding = detect_encoding(data[:SAMPLE_BYTES], whole=len(data) <= SAMPLE_BYTES)
    with suppress(UnicodeError):
        text = data[len(encoding.mark) :].decode(encoding.name)
        if encoding.mark + text.encode(encoding.name) == data:
            return TextFile(text, encoding)
    raise NotText("not valid UTF-8, UTF-16 or GB18030")


def _decodes(data: bytes, name: str, *, whole: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(name)().decode(data, whole)
    except UnicodeError:
        return None


def _looks_chinese(text: str) -> bool:
    """GB18030 takes almost any bytes; real text is made of common characters, which GB 2312 has too."""
    foreign = [char for char in text if ord(char) > 127]
    return sum(_common(char) for char in foreign) >= _COMMON_CHINESE * len(foreign)


def _common(char: str) -> bool:
    try:
        return len(char.encode("gb2312")) == 2
    except UnicodeError:
        return False


def why(error: Exception) -> str:
    """Return what an error says of a file, without the whole path that an error of the system names."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
