"""The event endpoint over a real database, in the test's own event loop, with the times that a test needs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count

from orbit.server.http.app import create_app
from orbit.server.services import Services, open_services
from orbit.server.ws.connection import SessionLimits
from orbit.server.ws.endpoint import EventEndpoint, add_event_endpoint
from orbit.subscriptions.bounds import Bounds
from orbit.wire.asyncapi import PATH
from tests.kit.orbit.scene import Credential, Scene
from tests.kit.orbit.sockets import Listening, listening
from tests.orbit.conformance.client import EventClient, event_client


@dataclass(frozen=True, slots=True)
class EventServer:
    """A running server.

    Attributes:
        listening: its socket.
        services: its rooms; a result confirmed by them wakes its pulls.
        endpoint: its event endpoint.
    """

    listening: Listening
    services: Services
    endpoint: EventEndpoint

    @property
    def url(self) -> str:
        """The address of the event connection."""
        return self.listening.url + PATH

    def connect(self, credential: Credential, **headers: str) -> AbstractAsyncContextManager[EventClient]:
        """A connection that has said nothing yet."""
        return event_client(self.url, credential.token, **headers)

    @asynccontextmanager
    async def greeted(self, scene: Scene, subscription_id: str, capacity: int = 32) -> AsyncGenerator[EventClient]:
        """A connection of the scene's owner that serves the subscription."""
        async with self.connect(scene.owner) as client:
            await client.greet(subscription_id, capacity)
            yield client

    async def result(self, scene: Scene, result_json: str = "1") -> None:
        """Confirm one result in this process, so that its pulls are woken."""
        scene.submit()
        (attempt,) = scene.claim()
        await self.services.tasks.confirm(
            scene.owner.digest,
            attempt_id=attempt.attempt_id,
            secret_sha256=attempt.secret_sha256,
            outcome="succeeded",
            effect="none",
            retryable=False,
            result_json=result_json,
        )


@asynccontextmanager
async def event_server(
    dsn: str,
    limits: SessionLimits | None = None,
    *,
    pool_size: int = 4,
    sweeping: bool = False,
    send_buffer: int | None = None,
) -> AsyncGenerator[EventServer]:
    """Serve until the block ends.

    Args:
        dsn: of the database.
        limits: times of the sessions.
        pool_size: connections at most.
        send_buffer: bytes of the kernel's buffer for each connection.
        sweeping: every claim looks at everything, as one after 2 s does: for tests that move the time of rows.
    """
    async with open_services(dsn, pool_size=pool_size) as services:
        app = create_app(services)
        endpoint = add_event_endpoint(app, services, limits=limits)
        if sweeping:
            endpoint.bounds = Bounds(partial(next, count(0, 10)))
        async with listening(app, send_buffer=send_buffer) as socket:
            yield EventServer(socket, services, endpoint)
