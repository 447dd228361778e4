"""One request and one reply of Chat Completions as plain values. Knows nothing of HTTP or of how to answer."""

import re
from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "tool_calls", "length"]
# Nobody asks at greater length; what is pasted between is content.
ENOUGH_CHARS = 2_000
# A summary as it stands in a context: one line in brackets that says what it is, then headings.
BACKGROUND = re.compile(r"\[[^\n]+\]\n\n(?=.*^#{1,6} )", re.MULTILINE | re.DOTALL)
# It asks for nothing new: the task is the one before it.
GO_ON = re.compile(
    r"(?:please )?(?:go on|continue|carry on|keep going|resume)"
    r"(?:,? (?:please|now|with (?:it|that|the task)|the task|your work|working|from [\w ]{1,30}))*[.!]?"
    r"|请?(?:继续|接着)(?:做|干|吧|下去|完成|执行|刚才的|这项|这个|任务|工作)*[。！!.]?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the request. `call_id` is set on a tool result."""

    role: Role
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""

    @property
    def background(self) -> bool:
        """Whether this is a summary of what came before: known text, and no request of anybody."""
        return self.role in ("user", "system") and bool(BACKGROUND.match(self.text))


@dataclass(frozen=True, slots=True)
class Step:
    """A tool call of the task at hand, with the result that stands in the request."""

    call: Call
    result: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a client asked for. `parts` are the canonical bytes of the tools and of each message."""

    model: str
    turns: tuple[Turn, ...]
    tools: tuple[str, ...]
    parts: tuple[bytes, ...]
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    reasoning_effort: str = ""

    @property
    def system(self) -> str:
        """Return the system text, or "" without one."""
        return "\n\n".join(turn.text for turn in self.turns if turn.role == "system")

    @property
    def task_start(self) -> int:
        """Return the index of the user message that asks for something now, or -1 when there is none.

        It is the last one, unless that only says to go on. A summary is no request.
        """
        asked = [i for i, turn in enumerate(self.turns) if turn.role == "user" and not turn.background]
        new = [i for i in asked if not GO_ON.fullmatch(self.turns[i].text.strip())]
        return (new or asked or [-1])[-1]

    @property
    def task(self) -> str:
        """Return the text of the user message that asks."""
        return self.turns[self.task_start].text if self.task_start >= 0 else ""

    @property
    def question(self) -> str:
        """Return the task as it is searched: of a very long one, its start and its end."""
        text = self.task
        return text if len(text) <= 2 * ENOUGH_CHARS else f"{text[:ENOUGH_CHARS]}\n{text[-ENOUGH_CHARS:]}"

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the calls after the user message that asks that have a result, in order."""
        return pair(self.turns[self.task_start + 1 :])


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answers: text, calls, or both."""

    text: str
    calls: tuple[Call, ...] = ()
    finish: Finish = "stop"


def pair(turns: tuple[Turn, ...]) -> tuple[Step, ...]:
    """Return each call among `turns` together with its result; a call without one is left out."""
    results = {turn.call_id: turn.text for turn in turns if turn.role == "tool"}
    calls = (call for turn in turns for call in turn.calls)
    return tuple(Step(call, results[call.id]) for call in calls if call.id in results)
