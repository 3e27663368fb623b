"""The ASGI application: the operations of the table, problems for everything else (sections 14, 15, 19, 20)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.server.http.answering import problem, remember_route
from orbit.server.http.body import BodyCutOff
from orbit.server.http.edge import Edge
from orbit.server.http.health import HealthEndpoints
from orbit.server.http.openapi import document, document_text
from orbit.server.http.operations import OPERATIONS, Operation
from orbit.server.http.subscriptions import SubscriptionEndpoints
from orbit.server.http.tasks import TaskEndpoints
from orbit.server.services import Services

Handler = Callable[[Request], Awaitable[Response]]
Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

OPENAPI_PATH: Final = "/openapi.json"


def create_app(services: Services, *, access_log: bool = False, lifespan: Lifespan | None = None) -> FastAPI:
    """The application over these services.

    The routes are plain ones: every body, parameter and answer has its own reader here, and the document is made from
    the same models, so the framework's validation would only do the work twice.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan)
    handlers = _handlers(services)
    for operation in OPERATIONS:
        endpoint = _answering(operation, handlers[operation.name])
        app.router.routes.append(
            Route(operation.path, endpoint, methods=[operation.method], name=operation.name, include_in_schema=True)
        )
    app.router.routes.append(Route(OPENAPI_PATH, _openapi, methods=["GET"], include_in_schema=False))
    app.openapi = document
    app.add_exception_handler(HTTPException, _refused)
    app.add_middleware(Edge, services=services, access_log=access_log)  # pyright: ignore[reportArgumentType] - a class of ASGI
    return app


def _handlers(services: Services) -> Mapping[str, Handler]:
    tasks = TaskEndpoints(services.tasks)
    subscriptions = SubscriptionEndpoints(services.subscriptions)
    health = HealthEndpoints(services.readiness)
    return {
        "confirmAttempt": tasks.confirm,
        "claimTasks": tasks.claim,
        "submitTask": tasks.submit,
        "heartbeatAttempt": tasks.heartbeat,
        "getTask": tasks.get,
        "cancelTask": tasks.cancel,
        "resolveTask": tasks.resolve,
        "createSubscription": subscriptions.create,
        "listSubscriptions": subscriptions.list,
        "getSubscription": subscriptions.get,
        "pauseSubscription": subscriptions.pause,
        "resumeSubscription": subscriptions.resume,
        "listDeliveries": subscriptions.list_deliveries,
        "listExhausted": subscriptions.list_exhausted,
        "getDelivery": subscriptions.get_delivery,
        "retryDelivery": subscriptions.retry,
        "getHealth": health.live,
        "getReadiness": health.ready,
        "getMetrics": health.metrics,
    }


def _answering(operation: Operation, handler: Handler) -> Handler:
    """The endpoint of an operation: the handler, whose refusals become problems."""

    async def endpoint(request: Request) -> Response:
        remember_route(request.scope, operation.path)
        try:
            return await handler(request)
        except OrbitError as error:
            return problem(request.scope, error)
        except BodyCutOff:
            return problem(request.scope, OrbitError(ErrorCode.MALFORMED_REQUEST, "The body was cut off."))

    return endpoint


async def _openapi(request: Request) -> Response:
    remember_route(request.scope, OPENAPI_PATH)
    return Response(document_text(), media_type="application/json")


async def _refused(request: Request, error: Exception) -> Response:
    """What the router found wrong, in our own words, with every method of the path in `Allow` (API-12)."""
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    if status == HTTPStatus.NOT_FOUND:
        return problem(request.scope, OrbitError(ErrorCode.ROUTE_NOT_FOUND))
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        routes = [route for route in request.app.routes if isinstance(route, Route)]
        here = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
        allowed = sorted({method for route in here for method in route.methods or ()})
        return problem(request.scope, OrbitError(ErrorCode.METHOD_NOT_ALLOWED), {"Allow": ", ".join(allowed)})
    return problem(request.scope, OrbitError(ErrorCode.INTERNAL))
