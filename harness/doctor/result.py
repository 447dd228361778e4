"""What one check found, as plain values, and how checks are run. Knows no words and no check."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.problems import Problem

Grade = Literal["good", "look", "mend"]


@dataclass(frozen=True, slots=True)
class Result:
    """What was found. The catalogue's line `section.code` says it with `values`, and what to do unless it is good.

    grade: good; look: worth a look, a server would start; mend: must be mended first.
    """

    code: str
    grade: Grade
    values: Mapping[str, object] = field(default_factory=dict)
    section: Literal["doctor", "problem"] = "doctor"


Check = Callable[[], Result]


def examine(checks: Mapping[str, Check], seconds: float) -> Iterator[tuple[str, Result]]:
    """Run all checks at once and yield (name, result) in their order, each as soon as it is there.

    A check that crashes, or has no result after `seconds`, is a result too.
    """
    boxes = {name: _begun(check) for name, check in checks.items()}
    end = time.monotonic() + seconds
    for name, box in boxes.items():
        try:
            yield name, box.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            yield name, Result("late", "mend", {"n": round(seconds)})


def _begun(check: Check) -> "queue.SimpleQueue[Result]":
    box: queue.SimpleQueue[Result] = queue.SimpleQueue()
    # A daemon: what hangs must not keep the command from ending.
    threading.Thread(target=lambda: box.put(_result(check)), daemon=True).start()
    return box


def _result(check: Check) -> Result:
    try:
        return check()
    except Problem as problem:
        return Result(problem.code, "mend", problem.values, "problem")
    except Exception as error:  # whatever a check meets, the others still have their say
        # The words of an error may quote a key; those of the system do not.
        reason = str(error) if isinstance(error, OSError) else type(error).__name__
        return Result("crashed", "mend", {"reason": reason})
