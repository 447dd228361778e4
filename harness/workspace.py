"""The one folder that a session's tools may touch, and how a path from the model is checked.

Knows nothing of tools or sessions. The check reads links as they are now; the tools run one after another,
and a command leaves no process behind, so nothing swaps a link between the check and the use.
"""

from dataclasses import dataclass, field
from pathlib import Path

from harness import trust
from harness.messages import clean
from harness.sandbox.detect import NOT_DETECTED, Sandbox
from harness.sources import Source
from harness.tools import ToolError

_FOLDERS = frozenset({".git", ".ssh", ".gnupg", ".aws", ".kube"})
_FILES = frozenset(
    {"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", ".pgpass", ".git-credentials", ".npmrc", ".pypirc"}
)
_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".asc")
_ADVICE = "Use a path relative to the workspace, such as `src/app.py`"


def is_protected(name: str) -> bool:
    """Tell whether a file or folder of this name may hold secrets and is kept from the model.

    is_protected(".env.local") -> True; is_protected(".gitignore") -> False
    """
    # Windows drops blanks and dots at the end, macOS and Windows ignore case.
    plain = name.casefold().rstrip(" .").partition(":")[0]
    return plain in _FOLDERS or plain in _FILES or plain.startswith(".env") or plain.endswith(_ENDINGS)


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder that the agent works in.

    root: the folder itself, absolute. label: its name for people. sandbox: how commands are confined;
    as long as nobody detected one, commands are refused. source: the folder that was copied, None where nobody
    knows it. accepted: digests of its own files that may change how the agent works (harness/trust.py). answers: the
    folder where that is remembered; what is not accepted there any more counts no longer. notes: where notes lie that
    outlive the session; None where there is no such place. offered: the list of them that the session was given when
    it began.
    """

    root: Path
    label: str
    sandbox: Sandbox = field(default=NOT_DETECTED)
    source: Path | None = None
    accepted: frozenset[str] = frozenset()
    notes: Path | None = None
    answers: Path | None = None

    def accepts(self, kind: str, name: str, text: str) -> bool:
        """Whether a person accepted that this file of the folder changes how the agent works, as it is. Blocking."""
        digest = trust.digest_of(kind, name, text)
        if digest not in self.accepted or not (self.answers and self.source):
            return digest in self.accepted
        return digest in trust.accepted(self.answers, self.source)

    offered: Source | None = None

    def resolve(self, path: str) -> Path:
        """Return where `path` leads once links are followed; it need not exist.

        Workspace(Path("/w"), "w").resolve("a/../b.py") -> Path("/w/b.py")
        Raises ToolError for a path that leads outside, is protected, or is no path at all.
        """
        if not path.strip() or "\0" in path:
            raise ToolError(f"The path is empty or holds a NUL character. {_ADVICE}.")
        root = self.root.resolve()
        asked = root / self._inside_path(path)
        try:
            found = asked.resolve()
        except (OSError, RuntimeError, ValueError):
            raise ToolError(f"`{clean(path)}` cannot be followed (a link that leads to itself?). {_ADVICE}.") from None
        if not found.is_relative_to(root):
            raise ToolError(f"`{clean(path)}` is outside the workspace and cannot be reached. {_ADVICE}.")
        for name in (*Path(path).parts, *found.relative_to(root).parts):
            if is_protected(name):
                raise ToolError(
                    f"`{clean(path)}` is protected: `.git`, `.env` files and keys are not read or written. "
                    "Work without it, or ask the user for what you need."
                )
        return found

    def name_of(self, path: Path) -> str:
        """Return `path` as the model should write it: relative, with forward slashes, clean for JSON."""
        return clean(path.relative_to(self.root.resolve()).as_posix())

    def _inside_path(self, path: str) -> str:
        """Commands may see the workspace under another name; a path from their output works here too."""
        inner = self.sandbox.inner_root
        if inner and (path == inner or path.startswith(inner + "/")):
            return path[len(inner) :].lstrip("/") or "."
        return path
