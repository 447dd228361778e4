"""The messages of a session as plain values. Knows nothing of events, storage or HTTP."""

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model asks for.

    `arguments` is the JSON text as the model wrote it, perhaps broken. `from_text` marks a call that
    stood in the reply's text and not in its `tool_calls` field.
    """

    id: str
    name: str
    arguments: str
    from_text: bool = False


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person asked, or what an extension added to keep the agent working."""

    text: str
    author: Literal["user", "extension"] = "user"


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What the model replied: text, tool calls, or both. `reasoning` is its own field on the wire."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one result of one call. `ok` is for the page; the model reads only `text`."""

    call_id: str
    name: str
    text: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class SummaryMessage:
    """What stands for the messages before the cut point. `preface` says that it is background.

    beside: what the harness itself puts behind the model's summary, word for word, or "".
    role: how it is sent; after a resume it is a system message.
    """

    preface: str
    text: str
    beside: str = ""
    role: Literal["user", "system"] = "user"

    @property
    def content(self) -> str:
        """Return the whole message as the model reads it."""
        return "\n\n".join(part for part in (self.preface, self.text, self.beside) if part)


Message = UserMessage | AssistantMessage | ToolResult | SummaryMessage

_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Return `text` without what UTF-8 cannot carry: a lone surrogate becomes U+FFFD.

    clean("a\\ud800b") -> "a\\ufffdb"
    """
    return _SURROGATES.sub("\ufffd", text)
