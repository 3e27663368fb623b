"""The outermost layer of HTTP: the request's id, readiness, the access log, and the last word on every failure.

The log names the route, never the address: addresses hold query strings and what people put there (AUT-14, F87).
"""

from __future__ import annotations

from time import perf_counter
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.server.catalog import LogEvent
from orbit.server.http.answering import REQUEST_ID, UNMATCHED, name_request, problem, route_of
from orbit.server.services import Services
from seapost.telemetry.logging import get_logger

_log: Final = get_logger("orbit.server")
_EVERY_ANSWER: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_OVER_HTTP: Final = "/v1/"


class Edge:
    """Wraps the application; WebSocket connections pass through."""

    def __init__(self, app: ASGIApp, services: Services, *, access_log: bool) -> None:
        self._app = app
        self._services = services
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()
        request_id = name_request(scope)
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = ((REQUEST_ID.lower().encode(), request_id.encode()), *_EVERY_ANSWER)
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        try:
            refusal = await self._refusal(scope)
            if refusal is None:
                await self._app(scope, receive, send_marked)
            else:
                await problem(scope, refusal)(scope, receive, send_marked)
        except Exception as error:  # noqa: BLE001 - nobody gets a stack trace, and no message that may quote a body
            _log.error(LogEvent.REQUEST_FAILED, request_id=request_id, route=route_of(scope), exc_info=error)
            if not status:
                await problem(scope, OrbitError(ErrorCode.INTERNAL))(scope, receive, send_marked)
        finally:
            if self._access_log:
                _log.info(
                    LogEvent.REQUEST_SERVED,
                    request_id=request_id,
                    method=scope["method"] if route_of(scope) != UNMATCHED else UNMATCHED,
                    route=route_of(scope),
                    status=status,
                    milliseconds=round((perf_counter() - started) * 1000, 1),
                )

    async def _refusal(self, scope: Scope) -> OrbitError | None:
        """Why no request is served at this moment (OPS-05)."""
        if not scope["path"].startswith(_OVER_HTTP):
            return None
        if self._services.stopping:
            return OrbitError(ErrorCode.SERVER_SHUTTING_DOWN)
        readiness = self._services.readiness
        reasons = readiness.known
        if reasons is None:
            reasons = await readiness.reasons()
        return OrbitError(ErrorCode.SERVICE_NOT_READY) if reasons else None
