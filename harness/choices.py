"""What was chosen for a session: its model, settings, extensions, name, and whether its folder is trusted."""

from harness import events as e


class Choices:
    """What people, the command line and earlier sessions chose, as the events say it."""

    def __init__(self) -> None:
        self.started: e.SessionStarted | None = None
        self.model: e.ModelChosen | None = None
        self.settings: dict[str, int] = {}
        self.extensions: tuple[str, ...] = ()
        self.fault = ""
        self.name = ""
        self.ticked: set[str] = set()
        self.trusted: bool | None = None  # what was answered about the folder's own files; None: nobody said
        self.accepted: frozenset[str] = frozenset()  # digests of those that may change how the agent works

    @property
    def offline(self) -> bool:
        """Whether the offline model answers."""
        return self.model is not None and self.model.offline

    def inherit(self, whose: "Choices") -> None:
        """Let what holds for `whose` hold here too. A sub-agent's summaries are not shown to a person first."""
        self.started, self.model, self.fault, self.trusted = whose.started, whose.model, whose.fault, whose.trusted
        self.accepted = whose.accepted
        self.settings, self.extensions = whose.settings | {"confirm_summary": 0}, whose.extensions

    def choose(self, event: e.Event) -> None:
        """Fold in one event; those that choose nothing change nothing."""
        match event:
            case e.SessionStarted():
                self.started, self.settings, self.extensions = event, dict(event.settings), event.extensions
            case e.ModelChosen():
                self.model = event
            case e.SettingChanged(name=name, value=value):
                self.settings[name] = value
            case e.ExtensionsChanged():
                self.extensions, self.settings = event.extensions, dict(event.settings)
            case e.FaultChosen(fault=fault):
                self.fault = fault
            case e.SessionNamed(name=name):
                self.name = name
            case e.Ticked(tick=tick, on=on):
                (self.ticked.add if on else self.ticked.discard)(tick)
            case e.WorkspaceTrusted(trusted=trusted, accepted=accepted):
                self.trusted, self.accepted = trusted, self.accepted | set(accepted) if trusted else frozenset()
            case e.SessionImported():
                # Whoever wrote the file cannot speak for the person who opens it.
                self.trusted, self.accepted = None, frozenset()
            case _:
                pass
