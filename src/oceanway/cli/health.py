"""Liveness and readiness of an owner that has reads and no consumers; nothing else is there."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from psycopg_pool import PoolTimeout
from starlette.responses import Response

from seapost.server.problems import problem

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from seapost.database.pool import SyncPool

READY_SECONDS_MAX: Final = 3.0


class Health:
    """Answers `/livez` and `/readyz`."""

    def __init__(self, pool: SyncPool) -> None:
        self._pool = pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""
        if scope["type"] == "http":
            response = await self._respond(scope["path"])
            await response(scope, receive, send)

    async def _respond(self, path: str) -> Response:
        match path:
            case "/livez":
                return _fine()
            case "/readyz" if await asyncio.to_thread(self._reaches_database):
                return _fine()
            case "/readyz":
                return problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready")
            case _:
                return problem(HTTPStatus.NOT_FOUND, "not-found")

    def _reaches_database(self) -> bool:
        try:
            with self._pool.connection(timeout=READY_SECONDS_MAX):
                return True
        except PoolTimeout:
            return False


def _fine() -> Response:
    return Response('{"status":"ok"}', media_type="application/json")
