"""A collector of spans on loopback: takes what OTLP clients send, and can be absent, slow or unwilling."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """What came. status: how it answers; seconds: how long it takes to."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.status, self.seconds = 200, 0.0
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(collector.seconds)
                if collector.status == 200:
                    collector.requests.append(ExportTraceServiceRequest.FromString(body))
                    collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                with contextlib.suppress(OSError):
                    self.send_response(collector.status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def spans(self) -> list[Any]:
        return [
            span for each in self.requests for own in each.resource_spans for scope in own.scope_spans
            for span in scope.spans
        ]  # fmt: skip

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def attributes(self, name: str) -> dict[str, Any]:
        """Return the attributes of the first span with this name."""
        return told(next(span for span in self.spans if span.name == name).attributes)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def told(attributes: Any) -> dict[str, Any]:
    """Return attributes as plain values."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextlib.contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    made = Collector(port)
    try:
        yield made
    finally:
        made.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
