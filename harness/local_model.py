"""A GGUF file served on this machine: llama.cpp's own HTTP server, from the package xllamacpp, as a child.

The child reads its standard input and ends when that closes, so it cannot outlive us, however we end.
Knows nothing of requests; what comes back is an address for the gateway.
"""

import secrets
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

from harness.provider import ProviderError

START_SECONDS = 180.0


class LocalModel:
    """The child that serves one GGUF file. `base_url` is its address once `start` has returned.

    It answers only to `api_key`, so that no page in a browser can set it to work.
    """

    def __init__(self, file: Path, *, window: int = 0, start_seconds: float = START_SECONDS) -> None:
        """window: tokens, 0 for as many as the model was trained on and the memory holds."""
        self.file = file
        self.window = window
        self.base_url = ""
        self.api_key = secrets.token_hex(24)
        self._limit = start_seconds
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Return the child's process id while there is one."""
        return self._child.pid if self._child else None

    def start(self) -> str:
        """Start the child, wait until the model answers, and return its address. Blocks.

        Raises ProviderError, one line, if the file or the package is missing or the model cannot be loaded.
        """
        check_file(self.file)
        if find_spec("xllamacpp") is None:
            raise ProviderError("--gguf needs the package xllamacpp: run `uv sync --group local`, then try again.")
        command = [sys.executable, "-m", "harness.local_server", str(self.file.resolve()), str(self.window)]
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parent.parent,
            # Ctrl-C in the terminal is for us; we end the child.
            start_new_session=True,
        )
        answer = self._exchange()
        if not answer.startswith("http://"):
            self.stop()
            why = answer or "the model server ended"
            raise ProviderError(f"`{self.file.name}` did not load ({why}); try another GGUF file, or a smaller one.")
        self.base_url = f"{answer}/v1"
        return self.base_url

    def _exchange(self) -> str:
        """Give the child its key; return its one line, or what kept it from coming."""
        child, lines = self._child, []
        assert child is not None and child.stdin is not None and child.stdout is not None
        # Not in the command line, which every process can read.
        child.stdin.write(f"{self.api_key}\n".encode())
        child.stdin.flush()
        reader = threading.Thread(target=lambda: lines.append(child.stdout.readline()), daemon=True)
        reader.start()
        reader.join(self._limit)
        return lines[0].decode().strip() if lines else f"it was not ready after {self._limit:g} s"

    def stop(self) -> None:
        """End the child and wait for it. Does nothing if there is none."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe:
                pipe.close()


def check_file(file: Path) -> None:
    """Raise ProviderError, one line, if `file` is no GGUF file that can be read."""
    try:
        with file.open("rb") as opened:
            magic = opened.read(4)
    except OSError as error:
        raise ProviderError(f"--gguf: `{file}` cannot be read: {error.strerror}.") from error
    if magic != b"GGUF":
        raise ProviderError(f"--gguf: `{file}` is no GGUF file; give the model file itself, ending in .gguf.")
