"""The events that set up a session: its lab, its model, its instructions and its settings."""

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    """The first event. `workspace` names the folder that was copied, `source` is its place."""

    lab: str
    extensions: tuple[str, ...]
    workspace: str
    language: str
    settings: dict[str, int] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChosen:
    """Which model answers from here on. `reason` is a code that the catalogue explains."""

    model: str
    provider: Literal["offline", "deepseek", "openai", "compatible", "local"]
    reason: str
    window: int | None = None
    window_source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsSet:
    """The system prompt and the tool definitions, word for word as they will be sent."""

    system: str
    tools: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChanged:
    """A person changed a setting of the session, such as the budget."""

    name: str
    value: int
