"""A GGUF file served on this machine: llama.cpp's own HTTP server, from the package xllamacpp, as a child.

The child reads its standard input and ends when that closes, so it cannot outlive us, however we end.
Knows nothing of requests; what comes back is an address for the gateway.
"""

import contextlib
import secrets
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

from harness.problems import Problem

START_SECONDS = 180.0


class LocalModel:
    """The child that serves one GGUF file. `base_url` is its address once `start` has returned.

    The address holds a secret, so that nothing else on this machine can set the model to work.
    """

    def __init__(self, file: Path, *, window: int = 0, start_seconds: float = START_SECONDS) -> None:
        """window: tokens, 0 for as many as the model was trained on and the memory holds."""
        self.file = file
        self.window = window
        self.base_url = ""
        self._limit = start_seconds
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Return the child's process id while there is one."""
        return self._child.pid if self._child else None

    def start(self) -> str:
        """Start the child, wait until the model answers, and return its address. Blocks.

        Problem: the file or the package is missing, or the model cannot be loaded.
        """
        check_file(self.file)
        if find_spec("xllamacpp") is None:
            raise Problem("gguf_package")
        command = [sys.executable, "-m", "harness.model.local_server", str(self.file.resolve()), str(self.window)]
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
            # Ctrl-C in the terminal is for us; we end the child.
            start_new_session=True,
        )
        answer = self._exchange()
        if not answer.startswith("http://"):
            self.stop()
            raise Problem("gguf_not_loaded", file=self.file.name, reason=answer or "the model server ended")
        self.base_url = f"{answer}/v1"
        return self.base_url

    def _exchange(self) -> str:
        """Give the child a secret; return its one line, or what kept it from coming."""
        child, lines = self._child, []
        assert child is not None and child.stdin is not None and child.stdout is not None
        # Not in the command line, which every process can read.
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(f"{secrets.token_hex(16)}\n".encode())
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
    """Do nothing if `file` is a GGUF file. Problem: it cannot be read, or is something else."""
    try:
        with file.open("rb") as opened:
            magic = opened.read(4)
    except OSError as error:
        raise Problem("gguf_not_read", file=file, reason=error.strerror) from error
    if magic != b"GGUF":
        raise Problem("gguf_no_model", file=file)
