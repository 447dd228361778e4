"""Keeps the head and the tail of a long output in bounded memory. Knows nothing of where it comes from."""

from collections import deque

_KEPT_BYTES = 65_536


class Excerpt:
    """Bytes that are added piece by piece; `text` shows the first and the last of them."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Add the next bytes."""
        self.size += len(piece)
        room = _KEPT_BYTES - len(self._head)
        self._head += piece[: max(0, room)]
        if rest := piece[max(0, room) :]:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= _KEPT_BYTES:
            self._tail_size -= len(self._tail.popleft())

    def text(self, limit: int) -> str:
        """Return the output as text of about `limit` characters, with a mark where the middle is left out.

        Bytes that are no UTF-8 become U+FFFD, and so does a NUL, which not every database can store.
        """
        kept = len(self._head) + self._tail_size
        head, tail = bytes(self._head), b"".join(self._tail)
        if kept == self.size:
            whole = _decoded(head + tail)
            if len(whole) <= limit:
                return whole
            first, last = whole[: limit // 2], whole[len(whole) - limit // 2 :]
            return f"{first}\n[{len(whole) - len(first) - len(last):,} characters are left out here]\n{last}"
        first, last = _decoded(head)[: limit // 2], _decoded(tail)[-(limit // 2) :]
        left = self.size - len(first.encode()) - len(last.encode())
        return f"{first}\n[about {left:,} bytes are left out here]\n{last}"


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", errors="replace").replace("\0", "\ufffd")
