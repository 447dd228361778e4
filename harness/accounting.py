"""How full the context is: what the provider counted last, and our estimate of what came after it.

The one estimator for the meter, the triggers and every preview. All figures are tokens.
"""

from dataclasses import dataclass
from typing import Literal

from harness.model.windows import most_reply
from harness.replay import State
from harness.sizes import Size, Usage

# Why there is no usage to go by: no call yet, none since the context was cut, or the provider did not say.
NoUsage = Literal["first_call", "next_call", "not_reported"]
# The rough rule that many agents use; far too low for Chinese and for dense text.
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Anchor:
    """What the provider reported for the newest turn, and what was added since. grown: may be below zero, where
    results were replaced meanwhile.
    """

    call: int
    usage: Usage
    grown: Size

    @property
    def since(self) -> int:
        """Return our estimate of what was added since, in tokens."""
        return max(0, self.grown.tokens)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The next request. exact, simple: by our tokenizer, and characters of JSON divided by four.

    reported: the part of both that the provider counted, for call `call`; None where no report holds.
    """

    exact: int
    simple: int
    reported: int | None
    call: int

    def tokens(self, *, simple: bool) -> int:
        """Return the figure that a strategy goes by."""
        return self.simple if simple else self.exact


@dataclass(frozen=True, slots=True)
class Window:
    """The model's window in tokens, None where nobody knows it; source: setting, listed, table, default, or ""."""

    tokens: int | None
    source: str

    @property
    def known(self) -> bool:
        """Whether it is more than a careful guess."""
        return self.tokens is not None and self.source != "default"


def anchor(state: State) -> Anchor | NoUsage:
    """Return the last reported usage if it still holds, else why it does not.

    A usage from before a cut is void: it counted messages that are gone. After a resume the one holds that held at the
    checkpoint.
    """
    if not state.ended:
        return "first_call"
    last = state.calls[state.ended - 1]
    if state.cut_at > last.seq:
        return "next_call"
    if last.usage is None or last.usage.prompt is None:
        return "not_reported"
    return Anchor(last.call, last.usage, state.context.total - last.context)


def estimate(state: State) -> Estimate:
    """Return how large the next request is: the last report that holds and our estimate of what came after it.

    Cached tokens are part of a report: they fill the window like any other.
    """
    found = anchor(state)
    if not isinstance(found, Anchor) or found.usage.prompt is None:
        total = state.context.total
        return Estimate(total.tokens, simple_tokens(total.chars), None, 0)
    prompt, grown = found.usage.prompt, found.grown
    exact, simple = prompt + grown.tokens, prompt + simple_tokens(grown.chars)
    return Estimate(max(0, exact), max(0, simple), prompt, found.call)


def summary_tokens(state: State, wanted: int) -> int:
    """Return how many tokens a summary may have: `wanted`, or the model's own limit on a reply where it is lower.

    On another server a name can be anything, so only of a hosted model is that limit known.
    """
    model = state.model
    most = most_reply(model.model) if model and model.provider in ("deepseek", "openai") else None
    return max(1, min(wanted, most) if most else wanted)


def simple_tokens(chars: int) -> int:
    """Return characters divided by four, rounded up: simple_tokens(9) -> 3."""
    return -(-chars // CHARS_PER_TOKEN)


def window_of(state: State) -> Window:
    """Return the window: the session's setting, else what the model's server, our table or a careful guess says."""
    if tokens := state.settings.get("window", 0):
        return Window(tokens, "setting")
    return Window(state.model.window, state.model.window_source) if state.model else Window(None, "")
