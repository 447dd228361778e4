"""What a person accepts of a folder's own files that would change how the agent works: remembered over sessions.

Not the folder is accepted but what was shown: kind, name and every word of a file, as one digest. A file that says
something else is asked about again. Blocking: call these in a thread.
"""

import hashlib
import json
import secrets
import threading
from collections.abc import Iterable
from pathlib import Path

from harness.messages import clean
from harness.places import real_path

FILE = "trusted.json"
# Of one folder the newest stay. A name is as long as the page shows it.
MOST, NAME_CHARS = 500, 200
_LOCK = threading.Lock()


def digest_of(kind: str, name: str, text: str) -> str:
    """Return what stands for a file that was accepted: of what kind it is, its name and all of its text."""
    return hashlib.sha256(json.dumps([kind, clean(name)[:NAME_CHARS], clean(text)]).encode()).hexdigest()


def accepted(data: Path, source: Path) -> frozenset[str]:
    """Return the digests accepted for `source`. data: the folder of the sessions. A broken file accepts nothing."""
    return frozenset(_read(data).get(_key(source), ()))


def remember(data: Path, source: Path, digests: Iterable[str]) -> None:
    """Accept these for `source` in later sessions too, beside the earlier ones. OSError: it cannot be written."""
    with _LOCK:
        known = _read(data)
        kept = dict.fromkeys([*known.get(_key(source), ()), *digests])
        _write(data, known | {_key(source): [*kept][-MOST:]})


def forget(data: Path, source: Path) -> None:
    """Take back everything that was accepted for `source`. OSError: it cannot be written."""
    with _LOCK:
        known = _read(data)
        # A no to what was never accepted needs no writing.
        if known.pop(_key(source), None) is not None:
            _write(data, known)


def _key(source: Path) -> str:
    # As the journal has it: a name that is no UTF-8 is the same one when the session is opened again.
    return clean(str(real_path(source)))


def _write(data: Path, known: dict[str, list[str]]) -> None:
    new = data / f"{FILE}.{secrets.token_hex(8)}"
    try:
        new.write_text(json.dumps(known, ensure_ascii=False, indent=1), "utf-8")
        new.replace(data / FILE)
    finally:
        new.unlink(missing_ok=True)


def _read(data: Path) -> dict[str, list[str]]:
    try:
        known = json.loads((data / FILE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    folders = known.items() if isinstance(known, dict) else ()
    return {
        name: [each for each in found if isinstance(each, str)] for name, found in folders if isinstance(found, list)
    }
