"""Health, readiness and metrics (OPS-05, P6-06)."""

from __future__ import annotations

from fastapi import Request, Response

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.server.http.answering import ok
from orbit.server.readiness import Readiness
from seapost.telemetry import metrics

_OK = '{"status":"ok"}'


class HealthEndpoints:
    """What machines ask that watch the process."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness

    async def live(self, _request: Request) -> Response:
        """The process lives; says nothing of the database, so that its outage restarts nobody."""
        return ok(_OK)

    async def ready(self, _request: Request) -> Response:
        """Requests are served, or why not."""
        reasons = await self._readiness.reasons()
        if reasons:
            raise OrbitError(ErrorCode.SERVICE_NOT_READY, reasons=list(reasons))
        return ok(_OK)

    async def metrics(self, _request: Request) -> Response:
        """What the process counted."""
        return Response(metrics.exposition(), headers={"content-type": metrics.CONTENT_TYPE})
