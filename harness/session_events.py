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

    @property
    def offline(self) -> bool:
        """Whether it is the offline model."""
        return self.provider == "offline"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionsChanged:
    """A person switched extensions on or off. `settings` are all that are in force from here on."""

    extensions: tuple[str, ...]
    settings: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultChosen:
    """From here on the offline model acts out this fault for the session; "" is none."""

    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionNamed:
    """A person gave the session a name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionForked:
    """What stands before was copied from another session, up to the end of its task `task`, workspace included."""

    session: str
    task: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionImported:
    """What stands before came from a file of this name; its workspace did not."""

    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """A person ticked, or unticked, something that the lab's text asks to look for."""

    tick: str
    on: bool
