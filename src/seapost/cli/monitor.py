"""Health and metrics of a dispatcher, answered from a thread of their own.

Authority: none; it only tells. `/livez` is progress: 200 while every loop turns, 503 when one is overdue. Because the
thread does not belong to the event loop, a loop that hangs is told as well, instead of hanging the probe.
`/metrics` is the Prometheus text format. Nothing else answers; no input is read beyond the request line and headers.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from seapost.dispatcher.pulse import Turn
from seapost.model.errors import InvalidSetting
from seapost.telemetry import metrics

READ_SECONDS_MAX: Final = 10

StartResponse = Callable[[str, list[tuple[str, str]]], object]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is nobody's concern."""


class _Handler(WSGIRequestHandler):
    timeout = READ_SECONDS_MAX

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Probes and scrapes are not logged."""


@contextmanager
def monitoring(host: str, port: int, progress: Callable[[], Sequence[Turn]]) -> Generator[int]:
    """Answer while the block runs; gives the port.

    Raises:
        InvalidSetting: the address cannot be listened on.
    """

    def answer(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return _respond(start_response, "405 Method Not Allowed", "text/plain; charset=utf-8", b"GET only\n")
        match environ["PATH_INFO"]:
            case "/livez":
                alive, body = liveness(progress())
                status = "200 OK" if alive else "503 Service Unavailable"
                return _respond(start_response, status, "application/json", body)
            case "/metrics":
                return _respond(start_response, "200 OK", metrics.CONTENT_TYPE, metrics.exposition())
            case _:
                return _respond(start_response, "404 Not Found", "text/plain; charset=utf-8", b"/livez or /metrics\n")

    try:
        server = _Server((host, port), _Handler)
    except OSError as error:
        raise InvalidSetting(f"monitor.port: {host}:{port} cannot be listened on: {error.strerror}") from None
    server.set_app(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="seapost-monitor")
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def liveness(turns: Sequence[Turn]) -> tuple[bool, bytes]:
    """Whether every loop turns, and the same as a document."""
    hanging = [turn.name for turn in turns if turn.overdue]
    document = {
        "status": "hanging" if hanging else "ok",
        "hanging": hanging,
        "loops": [
            {
                "name": turn.name,
                "ageSeconds": round(turn.age_seconds, 3),
                "limitSeconds": None if math.isinf(turn.limit_seconds) else round(turn.limit_seconds, 3),
            }
            for turn in turns
        ],
    }
    return not hanging, json.dumps(document).encode()


def _respond(start_response: StartResponse, status: str, content_type: str, body: bytes) -> Iterable[bytes]:
    headers = [
        ("Content-Type", content_type),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ]
    _ = start_response(status, headers)
    return [body]
