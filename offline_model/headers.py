"""What one request asks of this server in its HTTP headers: a fault to act out, and a smaller or larger window.

Kept out of the body, so that the same request goes to this server and to any other.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from offline_model.checks import BadRequest
from offline_model.faults import FAULTS

FAULT = "X-Offline-Fault"
WINDOW = "X-Offline-Window"
DIGITS = 9


@dataclass(frozen=True, slots=True)
class Asked:
    """`fault`: a name, or "" for the server's own. `window`: tokens, or 0 for the server's own."""

    fault: str = ""
    window: int = 0


def read_headers(headers: Iterable[tuple[bytes, bytes]]) -> Asked:
    """Return what the headers ask for. BadRequest: there is no such fault, or the window is no number of tokens.

    headers: (name, value) as ASGI has them, names in lower case.
    """
    values = {name.decode("latin-1"): value.decode("latin-1").strip() for name, value in headers}
    fault, window = values.get(FAULT.lower(), ""), values.get(WINDOW.lower(), "")
    if fault and fault not in FAULTS:
        raise BadRequest(f"{FAULT}: there is no fault `{fault}`; choose one of: {', '.join(FAULTS)}", param=FAULT)
    number = window.isascii() and window.isdigit() and len(window) <= DIGITS
    if window and not (number and int(window) > 0):
        raise BadRequest(f"{WINDOW}: `{window}` is no number of tokens, such as 2000", param=WINDOW)
    return Asked(fault, int(window or 0))
