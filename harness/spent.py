"""What an agent's model calls came to: how many, how large their requests were, and what the provider reported."""

from dataclasses import dataclass, replace

from harness.sizes import Size, Usage


@dataclass(frozen=True, slots=True)
class Spent:
    """Sums over model calls. requests: their sizes together; largest: the one with most characters.

    prompt, completion: tokens that the provider reported, for `reported` of the calls.
    """

    calls: int = 0
    requests: Size = Size()
    largest: Size = Size()
    prompt: int = 0
    completion: int = 0
    reported: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.calls + other.calls,
            self.requests + other.requests,
            max(self.largest, other.largest, key=lambda each: each.chars),
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.reported + other.reported,
        )

    def asked(self, size: Size) -> "Spent":
        """Return the sums with one more request of this size."""
        return self + Spent(1, size, size)

    def answered(self, usage: Usage) -> "Spent":
        """Return the sums with what was reported of a reply; nothing is added where the provider did not say."""
        if usage.prompt is None:
            return self
        more = usage.completion or 0
        return replace(
            self, prompt=self.prompt + usage.prompt, completion=self.completion + more, reported=self.reported + 1
        )
