"""A session as a file: a line of JSON that says what it is, then a line for each event. Knows no journal and no lab.

Reading believes nothing: lines, numbers and their count are bounded, and every event is validated. Whatever is wrong
becomes a Problem that names the line of the file, from 1.
"""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from harness.messages import clean
from harness.problems import Problem
from harness.recorded import JournalError, Recorded, decode

FORMAT, VERSION = "context-lab", 1
MEGABYTE = 1_048_576
FILE_BYTES, LINE_BYTES = 64 * MEGABYTE, 4 * MEGABYTE
MOST_EVENTS = 100_000
DEPTH = 50  # objects and lists inside one another; what describes a tool needs about ten
# Far above what any event counts, and within what every database and every format of a date can hold.
MOST = 10**11


def header(events: int) -> str:
    """Return the first line. `events` says how many follow, so that a file that was cut off is known as one."""
    return json.dumps({"format": FORMAT, "version": VERSION, "events": events}) + "\n"


def line(seq: int, time: float, kind: str, body: str) -> str:
    """Return the line of one event; `body` is its JSON as `recorded.encode` writes it, which has no line break."""
    return f'{{"seq": {seq}, "time": {json.dumps(time)}, "kind": {json.dumps(kind)}, "body": {body}}}\n'


def read(file: BinaryIO) -> Iterator[tuple[int, Recorded]]:
    """Yield (line of the file, event); at the end it is sure that none is missing. Problem: this is no such file."""
    size, events, seq = 0, 0, 0
    for number, raw in enumerate(iter(lambda: file.readline(LINE_BYTES + 1), b""), start=1):
        size += len(raw)
        if len(raw) > LINE_BYTES or size > FILE_BYTES:
            raise Problem("import_size", line=number, one=LINE_BYTES // MEGABYTE, megabytes=FILE_BYTES // MEGABYTE)
        value = _parse(raw)
        if number == 1:
            events = _events(value)
            continue
        seq += 1
        if seq > events:
            raise Problem("import_short", events=events)
        yield number, _event(value, number, seq)
    if not events:
        raise Problem("import_format")
    if seq < events:
        raise Problem("import_short", events=events)


def _parse(raw: bytes) -> Any:
    try:
        value = json.loads(raw.decode(), parse_int=_whole, parse_float=_real, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return None if _deep(value) else value


def _deep(value: Any, left: int = DEPTH) -> bool:
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return not left or any(_deep(each, left - 1) for each in inside)


def _events(value: Any) -> int:
    """Return how many events the header announces."""
    match value:
        case {"format": "context-lab", "version": int(version)} if version != VERSION:
            raise Problem("import_version", version=version)
        case {"format": "context-lab", "events": int(events)} if events > MOST_EVENTS:
            raise Problem("import_events", events=events, top=MOST_EVENTS)
        case {"format": "context-lab", "version": int(), "events": int(events)} if events > 0:
            return events
        case _:
            raise Problem("import_format")


def _event(value: Any, number: int, seq: int) -> Recorded:
    match value:
        case {"seq": int(found), "time": int() | float() as time, "kind": str(kind), "body": dict(body)} if time >= 0:
            pass
        case _:
            raise Problem("import_line", line=number)
    if found != seq:
        raise Problem("import_number", line=number, found=found, seq=seq)
    try:
        # As the journal would keep it: what UTF-8 cannot carry is replaced before anything is counted.
        return Recorded(seq, float(time), decode(kind, clean(json.dumps(body, ensure_ascii=False))))
    except JournalError as error:
        kind, why = clean(kind)[:40], error.values
        if error.code == "journal_unknown_event":
            raise Problem("import_kind", line=number, kind=kind) from error
        raise Problem("import_event", line=number, kind=kind, reason=f"{why['field']}: {why['reason']}") from error


def _whole(text: str) -> int:
    return int(text) if len(text) < 12 and abs(int(text)) <= MOST else _refuse(text)


def _real(text: str) -> float:
    value = float(text)
    return value if abs(value) <= MOST else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)
