"""As much of a reply as has come so far: shown to pages that join late, never journalled."""

from harness.events import Event, ModelCallEnded, ModelCallFailed, ModelCallStarted, TextDelta


class PartialReply:
    """Follows a session's events and the pieces between them."""

    def __init__(self) -> None:
        self._call = 0
        self._pieces: dict[str, list[str]] = {}

    def follow(self, event: Event) -> None:
        """Begin a reply, or end it."""
        if isinstance(event, ModelCallStarted):
            self._call, self._pieces = event.call, {"text": [], "reasoning": []}
        elif isinstance(event, ModelCallEnded | ModelCallFailed):
            self._call, self._pieces = 0, {}

    def add(self, delta: TextDelta) -> None:
        """Take one piece; a piece after the end is dropped."""
        if self._call:
            self._pieces[delta.kind].append(delta.text)

    def so_far(self) -> tuple[int, str, str] | None:
        """Return (call, text, reasoning) of the reply that streams now, or None."""
        if not self._call:
            return None
        for pieces in self._pieces.values():
            # Joined once, so that many readers of a long reply do not each join it anew.
            pieces[:] = ["".join(pieces)]
        return self._call, self._pieces["text"][0], self._pieces["reasoning"][0]
