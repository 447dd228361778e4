"""Every hook of an extension, on one page. An extension is a module `extension.py` in a lab's folder that
defines any of these functions; each is optional and has one call shape.

    tools(workspace) -> list[Tool]              add tools                                      (since lab 01)
    system_prompt(workspace) -> str             add instructions; or a list of Source, each named    (02)
    async on_stop(agent) -> str | None          at the task boundary: text keeps the agent working,
                                                None lets the task end; may compact            (05, 07)
    async before_turn(agent) -> None            before every model call: may compact           (08)
    before_send(request) -> Request             project one request; pure, deterministic       (09)
    on_event(happened) -> None                  watch (harness/watching.py); may change nothing        (06)
    sending(session) -> Sending | None          how the sending of this session's spans stands, for the page   (06)
    beside(state, removed) -> str               what of its own must stand beside the summary of `removed`,
                                                entries of the context, word for word; pure    (03)
    compaction(state, settings, trigger, keep) -> (Plan, Job)
                                                what it would cut now and how it would summarise: for the page's
                                                preview, for "Compact now", and for its own hooks; pure       (07)

A tool may hand its calls on to sub-agents (`Tool.delegate`). They have the tools, `before_turn`, `before_send` and
`beside` of the session's extensions, and their own events come to `on_event` wrapped, as ChildEvent. `on_event` runs in
the event loop while everything waits: what takes longer than a glance belongs into a thread.

To compact, copy lab 08's `extension.py`, `wording.toml` (a Job names it) and the `[settings]` of its `lab.toml`:
harness/cutting.py and compaction.py make the plan, agent.watch says whether it is time, compacting.act carries it out.

A hook that fails is reported on the page, and the task goes on with the history unchanged.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from harness.agent import Agent
from harness.compacting import Job
from harness.compaction import Plan
from harness.context import Entry
from harness.replay import State
from harness.request import Request
from harness.session_events import InstructionsSet, Told
from harness.sources import Source, checked, joined, sources_of
from harness.tools import Tool
from harness.tracing.standing import Sending
from harness.watching import Happened
from harness.workspace import Workspace

# Of a state: what would be cut and how. settings: those in force, or others for a dry run. trigger: "" for its own.
# keep: how many of the newest tasks stay, where a strategy cuts between tasks.
Compacting = Callable[[State, Mapping[str, int], str, int], tuple[Plan, Job]]


@dataclass(frozen=True, slots=True)
class Extension:
    """The hooks of one lab. `compacts`: its on_stop runs after the others have let the task end."""

    name: str
    tools: Callable[[Workspace], list[Tool]] | None = None
    system_prompt: Callable[[Workspace], str | Iterable[Source]] | None = None
    on_stop: Callable[[Agent], Awaitable[str | None]] | None = None
    before_turn: Callable[[Agent], Awaitable[None]] | None = None
    before_send: Callable[[Request], Request] | None = None
    on_event: Callable[[Happened], None] | None = None
    sending: Callable[[str], Sending | None] | None = None
    compaction: Compacting | None = None
    beside: Callable[[State, Sequence[Entry]], str] | None = None
    compacts: bool = False


HOOKS = (
    "tools", "system_prompt", "on_stop", "before_turn", "before_send", "on_event", "sending", "compaction", "beside",
)  # fmt: skip


def from_module(name: str, module: ModuleType, *, compacts: bool) -> Extension:
    """Return the hooks that `module` defines."""
    return Extension(name, *(getattr(module, hook, None) for hook in HOOKS), compacts=compacts)


def strategy_of(extensions: tuple[Extension, ...]) -> Compacting | None:
    """Return the strategy that the page shows and that acts by hand: the lab's own, else the first extension's.

    The lab's own extension is the last one. None where none compacts.
    """
    return next((each.compaction for each in (extensions[-1:] + extensions[:-1]) if each.compaction), None)


@dataclass(frozen=True, slots=True)
class Added:
    """What the extensions add to every request, and which of them failed: (extension, hook, what it raised)."""

    system: str
    sources: tuple[Told, ...]
    tools: dict[str, Tool]
    failed: tuple[tuple[str, str, str], ...]

    def instructions(self) -> InstructionsSet:
        """Return what stands before every message."""
        definitions = tuple(tool.definition() for tool in self.tools.values())
        return InstructionsSet(system=self.system, tools=definitions, sources=self.sources)


def gather(extensions: tuple[Extension, ...], workspace: Workspace) -> Added:
    """Return the system prompt, a blank line between its parts, and every tool by name.

    Of two tools with one name the later extension's stands. An extension that fails adds nothing.
    """
    sources: list[Source] = []
    tools, failed = {}, []
    for extension in extensions:
        for hook in ("tools", "system_prompt"):
            if not (function := getattr(extension, hook)):
                continue
            try:
                added = function(workspace)
                if hook == "tools":
                    tools |= {tool.name: tool for tool in added}
                else:
                    sources += sources_of(extension.name, added)
            except Exception as error:  # a lab's code is not ours: it must not cost the session
                failed.append((extension.name, hook, repr(error)))
    return Added(*joined([checked(source, tools) for source in sources]), tools, tuple(failed))


def at_the_end(extensions: tuple[Extension, ...]) -> list[Extension]:
    """Return the extensions with an on_stop hook, those that compact last."""
    return sorted((each for each in extensions if each.on_stop), key=lambda each: each.compacts)
