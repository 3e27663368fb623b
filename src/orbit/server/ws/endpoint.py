"""The endpoint `GET /v1/events/connect`: handshake, then a session (section 16)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send
from uuid_utils import uuid7

from orbit.access.token import TokenDigest
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.limits import EVENT_CONNECTIONS_MAX
from orbit.server.catalog import LogEvent
from orbit.server.services import Services
from orbit.server.ws.channel import Channel
from orbit.server.ws.connection import SessionLimits
from orbit.server.ws.handshake import OriginRule, allow_origins, check_request, refuse
from orbit.server.ws.session import Session
from orbit.store.calls import call
from orbit.subscriptions.bounds import Bounds
from orbit.wire.asyncapi import PATH
from seapost.telemetry.logging import get_logger

_log: Final = get_logger("orbit.server")


class EventEndpoint:
    """An ASGI application for one WebSocket path.

    Attributes:
        limits: times of its sessions.
        bounds: where claims of this process begin to look.
        connections_max: how many connections may be open; more are told to come back (F59).
        serving: how many connections are open.
    """

    def __init__(self, services: Services, *, limits: SessionLimits, origin_rule: OriginRule) -> None:
        self._services = services
        self._origin_rule = origin_rule
        self.bounds = Bounds()
        self.limits = limits
        self.connections_max = EVENT_CONNECTIONS_MAX
        self.serving = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        try:
            token = await self._admit(scope)
        except OrbitError as error:
            await refuse(scope, receive, send, error)
            return
        except Exception as error:  # noqa: BLE001 - nobody gets a stack trace
            _log.error(LogEvent.SESSION_FAILED, exc_info=error)
            await refuse(scope, receive, send, OrbitError(ErrorCode.INTERNAL))
            return
        self.serving += 1
        try:
            await self._session(scope, receive, send, token).run()
        finally:
            self.serving -= 1

    async def _admit(self, scope: Scope) -> TokenDigest:
        if self._services.stopping:
            raise OrbitError(ErrorCode.SERVER_SHUTTING_DOWN)
        if self.serving >= self.connections_max:
            raise OrbitError(ErrorCode.SERVICE_BUSY, "this process serves as many connections as it may")
        if await self._services.readiness.reasons():
            raise OrbitError(ErrorCode.SERVICE_NOT_READY)
        token = check_request(scope, self._origin_rule)
        arguments = (token.sha256, "events:consume")
        await self._services.database.run(
            lambda connection: call(connection, "select orbit.access_check_v1(%s, %s)", arguments)
        )
        return token

    def _session(self, scope: Scope, receive: Receive, send: Send, token: TokenDigest) -> Session:
        services = self._services
        return Session(
            Channel(scope, receive, send, write_seconds=self.limits.write),
            token,
            connection_id=f"conn_{uuid7().hex}",
            subscriptions=services.subscriptions,
            deliveries=services.deliveries,
            wakes=services.wakes,
            bounds=self.bounds,
            limits=self.limits,
        )


def add_event_endpoint(
    app: Starlette,
    services: Services,
    *,
    limits: SessionLimits | None = None,
    allowed_origins: Collection[str] = (),
) -> EventEndpoint:
    """Add the endpoint to the application.

    Args:
        app: the application; `ws_options()` tells its server what the endpoint needs.
        services: the rooms of this process.
        limits: times of the sessions, for tests.
        allowed_origins: browser origins that may connect besides the host itself, for instance `https://a.example`.
    """
    endpoint = EventEndpoint(services, limits=limits or SessionLimits(), origin_rule=allow_origins(allowed_origins))
    app.router.routes.append(WebSocketRoute(PATH, endpoint, name="events"))
    return endpoint
