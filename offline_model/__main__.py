"""`python -m offline_model --port 9000`: the offline model alone, for any OpenAI-compatible client."""

import argparse
import sys
import time
from pathlib import Path

from offline_model.faults import FAULTS
from offline_model.server import DELAY, WINDOW, OfflineServer

LABS = Path(__file__).resolve().parent.parent / "labs"


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m offline_model", description="An OpenAI-compatible server without weights."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback only)")
    parser.add_argument("--port", type=int, default=9000, help="port, 0 for any free one (default: 9000)")
    parser.add_argument("--window", type=int, default=WINDOW, help="context window in tokens")
    parser.add_argument("--delay", type=float, default=DELAY * 1000, help="milliseconds between two streamed pieces")
    parser.add_argument(
        "--fault", default="", metavar="NAME[:TIMES]", help=f"one of: {', '.join(FAULTS)}; for good, or so often"
    )
    parser.add_argument("--script", type=Path, action="append", help="an offline.toml (default: those of all labs)")
    return parser


def main() -> int:
    """Run until Ctrl-C. Return the exit code."""
    options = arguments().parse_args()
    scripts = options.script or sorted(LABS.glob("*/offline.toml"))
    try:
        server = OfflineServer(
            scripts,
            host=options.host,
            port=options.port,
            window=options.window,
            fault=options.fault,
            delay=options.delay / 1000,
        )
        address = server.start()
    except (ValueError, OSError) as error:
        print(f"The offline model can't start: {error}", file=sys.stderr)
        return 2
    print(f"The offline model answers at {address} (Ctrl-C stops it)", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
