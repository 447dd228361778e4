"""When compaction stops by itself: after three failures in a row, or two passes that did not help.

A compaction that helps closes it, and so does one by hand or a changed setting.
"""

from harness import events as e

# Failures in a row (the article behind lab 09, and peers), and passes that left the request above its limit.
MOST_FAILURES, MOST_FRUITLESS = 3, 2
# What says that the breaker is open, by why it is.
TOLD = {"failures": "breaker_failures", "no_progress": "breaker_no_progress"}
# A person's no, a Stop and a cut that would not help are no failures of an attempt.
_NO_FAILURE = ("declined", "stopped", "nothing_to_cut", "little_gain", *TOLD.values())


class Breaker:
    """Counts attempts, as events tell of them. fruitless: by strategy, since one may help where another does not.

    told: (task, reason) of the newest refusal, so that it is said once.
    """

    def __init__(self) -> None:
        self.failures = 0
        self.fruitless: dict[str, int] = {}
        self.told: tuple[int, str] | None = None

    @property
    def open(self) -> str:
        """Return why a strategy compacts nothing by itself now: "failures" or "no_progress", or "" where all do."""
        return max((self.stops(strategy) for strategy in ("", *self.fruitless)), key=len)

    def stops(self, strategy: str) -> str:
        """Return why this strategy compacts nothing by itself now, as for `open`."""
        if self.failures >= MOST_FAILURES:
            return "failures"
        return "no_progress" if self.fruitless.get(strategy, 0) >= MOST_FRUITLESS else ""

    def hopeless(self, strategy: str) -> bool:
        """Whether passes that were to help did not either, so that none is made any more."""
        return self.fruitless.get(strategy, 0) >= 2 * MOST_FRUITLESS

    def judge(self, strategy: str, *, still_past: bool) -> None:
        """Take note of a pass, and whether the request was past its limit still."""
        self.failures = 0
        self.fruitless[strategy] = self.fruitless.get(strategy, 0) + 1 if still_past else 0

    def after(self, reason: str) -> int:
        """Return how many failures in a row it will be with one for `reason`; 0 where that is none."""
        return 0 if reason in _NO_FAILURE else self.failures + 1

    def apply(self, event: e.Event) -> None:
        """Take note of one event."""
        match event:
            case e.CompactionRefused(task=task, reason=reason):
                self.told = (task, reason)
                self.failures = self.after(reason) or self.failures
            case e.ContextCompacted(scope="request", trigger=trigger) if trigger != "by hand":
                # Each of these costs a call before every turn and never gets there: what stays is too large by itself.
                self.judge(event.strategy, still_past=event.left > event.budget)
            case e.ContextCompacted() | e.CompactionUndone() | e.SettingChanged() | e.ExtensionsChanged():
                self.failures, self.fruitless, self.told = 0, {}, None
            case _:
                pass
