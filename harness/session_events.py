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


# What a part of the system prompt is: the prompt's body, rules or words of a project or a user, the list of skills,
# of notes or of roles, the command that checks a task, or what an extension says of itself.
SourceKind = Literal["body", "rules", "prompt", "skills", "memory", "roles", "check", "extension"]


@dataclass(frozen=True, slots=True)
class Told:
    """Where a part of the system prompt came from: it is `system[start:end]`, in characters.

    problem: a code that the catalogue explains, or "". detail: the words that its line needs. wanted: what a person is
    asked to accept, word for word.
    """

    kind: SourceKind
    name: str
    start: int
    end: int
    problem: str = ""
    detail: str = ""
    wanted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsSet:
    """The system prompt and the tool definitions, word for word as they will be sent.

    sources: what the prompt is made of, in order, and what was left out because something was wrong with it.
    """

    system: str
    tools: tuple[dict[str, Any], ...]
    sources: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceTrusted:
    """Whether the folder may change how the agent works, by files of its own.

    by: a person said so now, or did earlier for the same folder. accepted: digests of the files that may from here on,
    beside those before (harness/trust.py); a file that says something else by then may not.
    """

    trusted: bool
    by: Literal["person", "earlier"] = "person"
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChanged:
    """A person changed a setting of the session, such as the budget.

    preset: the id of the lab's numbers that belong together, on the first of those that choosing them changed, or "".
    """

    name: str
    value: int
    preset: str = ""


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
