"""Where a message's row stands: on this page, or on the page of older rows that shows it."""

from web.parts import PAGE, in_context, model_start, part_before, pinned
from web.rows import at, row_id
from web.shown import Shown
from web.viewer import Viewer


class Links:
    """Links to rows of one session's feed, as one viewer sees it."""

    def __init__(self, session: Shown, viewer: Viewer) -> None:
        self._session, self._viewer = session, viewer
        self._model = viewer.view == "model"
        first = model_start(session.state) if self._model else 1
        self._from = max(first, part_before(session, session.committed, first).before + 1)
        self._head = {entry.seq for entry in pinned(session.state)} if self._model else set()

    def to(self, seq: int) -> str:
        """Return the address of the row of the event with journal number `seq`."""
        name = row_id(at(self._session.records, seq))
        if self._here(seq):
            return f"#{name}"
        # With some rows behind it, so that it does not stand at the very end.
        before = min(seq + PAGE // 2, self._session.committed + 1)
        return f"/s/{self._session.id}{self._viewer.query(view='full', before=str(before))}#{name}"

    def _here(self, seq: int) -> bool:
        if not self._model:
            return seq >= self._from
        return seq in in_context(self._session.state) and (seq >= self._from or seq in self._head)
