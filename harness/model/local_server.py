"""The child process behind --gguf: llama.cpp's own HTTP server on a free port of this machine.

Reads a secret from standard input, writes one line, its address or what went wrong, and ends when standard
input does. Started by harness.local_model; imports nothing else of the harness.
"""

import http.client
import os
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

# The server would keep up to 8 GiB of old prompts.
CACHE_MIB = 256


def serve(file: str, window: int) -> None:
    """Load the model, say where it answers, and stay until the parent is gone. `window` 0: as trained."""
    secret = sys.stdin.readline().strip()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Installed on demand, so not imported with the module.
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = file
    parameters.model_alias = {Path(file).stem}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.cache_ram_mib = CACHE_MIB
    # Every path begins with it: no page in a browser can set the model to work.
    parameters.api_prefix = f"/{secret}"
    parameters.endpoint_slots = False
    parameters.ui = False
    parameters.verbosity = 0
    try:
        server = xllamacpp.Server(parameters)
    except RuntimeError as error:
        print(str(error), flush=True)
        return
    address = f"{server.listening_address}/{secret}"
    _wait_healthy(address)
    print(address, flush=True)
    threading.Event().wait()


def _wait_healthy(address: str) -> None:
    """Wait until the server has loaded; it answers 503 before. The parent holds the time limit."""
    parts = urlsplit(address)
    while True:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
        try:
            connection.request("GET", f"{parts.path}/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.1)


def _end_with_parent() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
