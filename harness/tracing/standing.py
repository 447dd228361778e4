"""How the sending of spans stands. Knows nothing of how they are sent."""

from dataclasses import dataclass
from typing import Literal

# missing_packages: what sends is not installed. bad_address: the address is none. unreachable: nobody answers there.
# refused: what answers there does not take them. failed: they could not be made or written.
Fault = Literal["", "missing_packages", "bad_address", "unreachable", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Sending:
    """How the sending of a session's spans stands. endpoint: where to, "" where the address is none; counts of spans.

    waiting: not sent yet. lost: given up. fault: why the newest attempt failed, and `detail` of it for a person.
    """

    endpoint: str
    sent: int = 0
    waiting: int = 0
    lost: int = 0
    fault: Fault = ""
    detail: str = ""
