"""The reads of one owner as a small ASGI application, to be mounted beside the receiver of its consumers.

The owner's functions are plain ones and run in threads of their own, as many as the owner's pool has connections for
them; calls beyond a bound are refused at once, not queued.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from oceanway.reads.call import MEDIA_TYPE, PATH, REQUEST_BYTES_MAX
from oceanway.reads.errors import CallRefused
from seapost.model.errors import InvalidSetting
from seapost.server.body import read_body
from seapost.server.problems import Refusal, problem
from seapost.telemetry.logging import get_logger, new_reference

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from oceanway.reads.server import Serving

BODY_SECONDS_MAX: Final = 30.0
RETRY_AFTER_SECONDS: Final = 1

_log = get_logger("oceanway.reads.endpoint")


class ReadsEndpoint:
    """Answers `POST /oceanway/v1/reads/{operation}` and nothing else.

    Args:
        serving: the owner's operations.
        threads: calls that are worked on at once.
        waiting_max: calls that may wait for a thread; more are refused with 503.
    """

    def __init__(self, serving: Serving, *, threads: int = 2, waiting_max: int = 16) -> None:
        if threads < 1 or waiting_max < 0:
            raise InvalidSetting("An endpoint has at least one thread.")
        self._serving = serving
        self._threads = ThreadPoolExecutor(threads, f"oceanway-reads-{serving.owner}")
        self._calls_max = threads + waiting_max
        self._calls = 0

    def close(self) -> None:
        """Wait for running calls and end the threads."""
        self._threads.shutdown()

    def serves(self, path: str) -> bool:
        """Whether a path belongs to the reads."""
        return path.startswith(f"{PATH}/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""
        response = await self.respond(Request(scope, receive))
        await response(scope, receive, send)

    async def respond(self, request: Request) -> Response:
        """The response to one request; every way to fail is a problem document without a stack trace."""
        path = request.url.path
        name = path.removeprefix(f"{PATH}/")
        if not self.serves(path) or not self._serving.knows(name):
            return problem(HTTPStatus.NOT_FOUND, "not-found")
        if request.method != "POST":
            return problem(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", headers={"allow": "POST"})
        if self._calls >= self._calls_max:
            headers = {"retry-after": str(RETRY_AFTER_SECONDS)}
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, "overloaded", headers=headers)
        self._calls += 1
        try:
            body = await read_body(request, bytes_max=REQUEST_BYTES_MAX, seconds_max=BODY_SECONDS_MAX)
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._threads, self._serving.answer, name, body)
        except Refusal as refusal:
            return problem(refusal.status, refusal.name, refusal.detail, headers=refusal.headers)
        except CallRefused as refused:
            _log.warning("read_refused", operation=name, status=int(refused.status), rule=refused.reason)
            return problem(refused.status, refused.problem, refused.reason)
        except Exception as error:  # noqa: BLE001 - nobody gets a stack trace
            reference = new_reference()
            _log.error("read_failed", operation=name, reference=reference, exc_info=error)
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", reference=reference)
        finally:
            self._calls -= 1
        return Response(answer, media_type=MEDIA_TYPE)
