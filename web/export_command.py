"""`server.py export`: hands one session on, out of the journal, as a file or to a trace viewer. No server is needed."""

import argparse
import contextlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.discovery import Lab, find
from harness.exchange.transfer import export as as_jsonl
from harness.journal import Journal
from harness.problems import Problem
from harness.recorded import Recorded
from harness.session_events import SessionStarted
from harness.storage import journal_file
from harness.tracing.sending import send_later
from web.command import plain
from web.exports import atif_text, file_name
from web.handout import handout
from web.moment import moment_from
from web.pages import Pages
from web.viewer import Viewer
from web.words import Words

NEWEST, TERMINAL = "newest", "-"


def hand_on(options: argparse.Namespace, labs: Mapping[str, Lab], data: Path, words: Words) -> int:
    """Export the session that `options` name and say so in a line; return the exit code.

    data: the folder of the journal where no other is named. Problem: there is nothing to export, or no way to.
    """
    if not options.session:
        raise Problem("export_which")
    file = journal_file(options.database, data)
    if file and not file.is_file():
        raise Problem("export_no_database", file=file)
    with contextlib.closing(Journal(options.database or f"sqlite:///{file}")) as journal:
        session, records = _read(journal, options.session, file)
        if options.form == "otlp":
            return _send(session, records, options.endpoint, words)
        pieces = _pieces(journal, session, records, options.form, labs, words)
        _write(pieces, options.out or file_name(session, options.form), options.force, words)
    return 0


def _read(journal: Journal, asked: str, file: Path | None) -> tuple[str, list[Recorded]]:
    """Return the id and the events of the session that is asked for."""
    session = next(iter(journal.newest(but="Ticked")), ("", 0.0))[0] if asked == NEWEST else asked
    records = journal.read(session) if session else []
    if not records:
        raise Problem("export_unknown", session=asked, place=file or "--database")
    return session, records


def _pieces(
    journal: Journal, session: str, records: list[Recorded], form: str, labs: Mapping[str, Lab], words: Words
) -> Iterable[bytes]:
    match form:
        case "jsonl":
            return as_jsonl(journal, session)
        case "atif":
            return [atif_text(session, records).encode()]
        case _:
            started = records[0].event
            assert isinstance(started, SessionStarted), "no other event comes first"
            moment = moment_from(session, find(dict(labs), started.lab), labs, records)
            return [handout(moment, Viewer(Pages.load(labs=labs), words.language)).encode()]


def _write(pieces: Iterable[bytes], out: str, force: bool, words: Words) -> None:
    """Write a file, all of it or nothing, and never over one that is there unless that is asked for."""
    if out == TERMINAL:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    path = Path(out)
    whole, part = b"".join(pieces), path.with_name(f".{path.name}.part")
    if path.exists() and not force:
        raise Problem("export_exists", file=path)
    try:
        try:
            part.write_bytes(whole)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise Problem("export_not_written", file=path, reason=error.strerror) from error
    print(plain(words.t("export.written", name=path, kilobytes=-(-len(whole) // 1024))))


def _send(session: str, records: list[Recorded], endpoint: str, words: Words) -> int:
    """Send the session's spans; a viewer that took only some of them has taken none twice."""
    done = send_later(session, records, endpoint)
    if done.fault:
        reason = words.code("sending_fault", done.fault, endpoint=done.endpoint, detail=done.detail)
        every = done.sent + done.waiting + done.lost
        raise Problem("export_not_sent", sent=done.sent, all=every, endpoint=done.endpoint, reason=reason)
    print(plain(words.t("export.sent", n=done.sent, endpoint=done.endpoint)))
    return 0
