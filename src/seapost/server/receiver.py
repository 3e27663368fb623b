"""The receiver: an ASGI application that takes deliveries for one or more inboxes.

| Path | |
|---|---|
| `POST /seapost/v1/deliveries` | a batch in the format `seapost.delivery.v1`, one result for each delivery |
| `POST /seapost/v1/receipts/read` | the targeted read of one receipt |
| `GET /livez` | the process answers |
| `GET /readyz` | every inbox reaches its database |
| `GET /metrics` | Prometheus text format |

Order of checks: capacity, type and size of the body, token, digest of the body, protocol, consumer, bindings.
Nothing of a request is parsed before its signature was checked. What an event ends in is always a result in
a 200 response; every other status is a problem of the call itself and never says anything about an event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from seapost.contracts.canonical import Limits, parse
from seapost.inbox.read import ReceiptReadRequest, read_receipt
from seapost.inbox.receive import Receiving
from seapost.model.errors import ContractError, InvalidSetting, InvalidToken
from seapost.server.body import read_body
from seapost.server.openapi import describe
from seapost.server.problems import Refusal, problem, problem_of_status
from seapost.telemetry import metrics
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger, new_reference
from seapost.transport import token, wire
from seapost.transport.token import TokenClaims, TokenVerifier

_log = get_logger("seapost.server")

RECEIPT_BODY_BYTES_MAX: Final = 65_536

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class ReceiverSettings:
    """What the receiver takes at most.

    Attributes:
        concurrency_max: requests worked on at once; more are refused with 503, not queued.
        handle_seconds: for the handlers of one request, then 504; a handler in a thread goes on to its end.
        retry_after_seconds: told to a caller that was refused for want of capacity.
    """

    body_bytes_max: int = 33_554_432
    body_seconds: float = 30.0
    deliveries_max: int = 1_000
    concurrency_max: int = 16
    handle_seconds: float = 60.0
    retry_after_seconds: int = 1

    def __post_init__(self) -> None:
        """Refuse limits that let nothing through."""
        limits = (
            self.body_bytes_max,
            self.body_seconds,
            self.deliveries_max,
            self.concurrency_max,
            self.handle_seconds,
            self.retry_after_seconds,
        )
        if min(limits) <= 0:
            raise InvalidSetting("The limits of a receiver are above 0.")


class _Receiver:
    """The endpoints, with what they need."""

    def __init__(
        self,
        receivings: Mapping[tuple[str, str], Receiving],
        verifier: TokenVerifier | None,
        settings: ReceiverSettings,
    ) -> None:
        self._receivings = receivings
        self._verifier = verifier
        self._settings = settings
        self._working = 0

    async def deliver(self, request: Request) -> Response:
        """Take a batch of deliveries."""
        return await self._guarded(request, self._deliver, self._settings.body_bytes_max)

    async def read(self, request: Request) -> Response:
        """Read one receipt."""
        return await self._guarded(request, self._read, RECEIPT_BODY_BYTES_MAX)

    async def live(self) -> dict[str, str]:
        """The process answers; says nothing about databases, so that their outage restarts nobody."""
        return {"status": "ok"}

    async def ready(self) -> Response:
        """Every inbox reaches its database."""
        try:
            async with asyncio.timeout(self._settings.handle_seconds):
                await asyncio.gather(*(receiving.ready() for receiving in self._receivings.values()))
        except Exception as error:  # noqa: BLE001 - whatever the databases say
            reference = new_reference()
            _log.warning(LogEvent.REQUEST_FAILED, path="/readyz", reference=reference, exc_info=error)
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", reference=reference)
        return Response('{"status":"ok"}', media_type="application/json")

    async def metrics(self) -> Response:
        """What the process counted."""
        return Response(metrics.exposition(), headers={"content-type": metrics.CONTENT_TYPE})

    async def _guarded(
        self, request: Request, work: Callable[[TokenClaims | None, bytes], Awaitable[bytes]], bytes_max: int
    ) -> Response:
        """Run one call with its limits; every way to fail is a problem."""
        settings = self._settings
        if self._working >= settings.concurrency_max:
            headers = {"retry-after": str(settings.retry_after_seconds)}
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, "overloaded", headers=headers)
        self._working += 1
        try:
            body = await read_body(request, bytes_max=bytes_max, seconds_max=settings.body_seconds)
            claims = self._authenticate(request, body)
            async with asyncio.timeout(settings.handle_seconds):
                answer = await work(claims, body)
        except Refusal as refusal:
            _log.info(LogEvent.REQUEST_REFUSED, problem=refusal.name, status=refusal.status)
            return problem(refusal.status, refusal.name, refusal.detail, headers=refusal.headers)
        except TimeoutError:
            return problem(HTTPStatus.GATEWAY_TIMEOUT, "too-slow")
        except Exception as error:  # noqa: BLE001 - nobody gets a stack trace
            reference = new_reference()
            _log.error(LogEvent.REQUEST_FAILED, reference=reference, exc_info=error)
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", reference=reference)
        finally:
            self._working -= 1
        return Response(answer, media_type=wire.MEDIA_TYPE)

    async def _deliver(self, claims: TokenClaims | None, body: bytes) -> bytes:
        settings = self._settings
        try:
            request = wire.decode_request(
                body, body_bytes_max=settings.body_bytes_max, deliveries_max=settings.deliveries_max
            )
        except ContractError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, "invalid-request", str(error)) from None
        receiving = self._receiving(request.destination, request.consumer_name)
        bindings = token.delivery_bindings(
            destination=request.destination,
            consumer_name=request.consumer_name,
            delivery_count=len(request.deliveries),
            body=body,
        )
        _require(claims, request.consumer_name, token.DELIVER_SCOPE, token.DELIVER_PURPOSE, bindings)
        return wire.encode_response(request, await receiving.receive(request))

    async def _read(self, claims: TokenClaims | None, body: bytes) -> bytes:
        try:
            _ = parse(body, limits=Limits(bytes_max=RECEIPT_BODY_BYTES_MAX, depth_max=2))
            request = ReceiptReadRequest.decode(body)
        except ContractError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, "invalid-request", str(error)) from None
        receiving = self._receiving(request.destination, request.consumer_name)
        arguments = {name: str(value) for name, value in request.to_json().items()}
        _require(claims, request.consumer_name, token.RECEIPT_SCOPE, token.RECEIPT_PURPOSE, arguments)
        return (await read_receipt(receiving, request)).canonical()

    def _authenticate(self, request: Request, body: bytes) -> TokenClaims | None:
        """The claims of an authentic token for this very body; None when the receiver checks no tokens."""
        if self._verifier is None:
            return None
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        try:
            if scheme.lower() != "bearer" or not bearer:
                raise InvalidToken("The workload token is missing")
            claims = self._verifier.verify(bearer.strip())
            if "requestSha256" in claims.bindings:
                claims.require_binding("requestSha256", sha256(body).hexdigest())
        except InvalidToken as error:
            raise Refusal(
                HTTPStatus.UNAUTHORIZED, "unauthenticated", str(error), headers={"www-authenticate": "Bearer"}
            ) from None
        return claims

    def _receiving(self, destination: str, consumer_name: str) -> Receiving:
        receiving = self._receivings.get((destination, consumer_name))
        if receiving is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "unknown-consumer")
        return receiving


def _require(
    claims: TokenClaims | None, audience: str, scope: str, purpose: str, bindings: Mapping[str, str | int]
) -> None:
    """Raise 403 unless the token is for exactly this call."""
    if claims is None:
        return
    try:
        claims.require(audience=audience, scope=scope, purpose=purpose, bindings=bindings)
    except InvalidToken as error:
        raise Refusal(HTTPStatus.FORBIDDEN, "forbidden", str(error)) from None


def create_app(
    receivings: Iterable[Receiving],
    *,
    verifier: TokenVerifier | None,
    settings: ReceiverSettings | None = None,
    lifespan: Lifespan | None = None,
) -> FastAPI:
    """The receiver for these inboxes.

    Args:
        verifier: checks the workload token of every call. None checks nothing and is only for a receiver
            that nobody else can reach; it must be asked for in so many words.
        lifespan: opens what the inboxes need (pools, the inboxes themselves) in the process that serves.

    Raises:
        InvalidSetting: there is no inbox, or two of one destination and consumer.
    """
    by_name: dict[tuple[str, str], Receiving] = {}
    for receiving in receivings:
        place = (receiving.inbox.destination, receiving.inbox.name)
        if place in by_name:
            raise InvalidSetting(f"Two inboxes serve {place[0]} as {place[1]}.")
        by_name[place] = receiving
    if not by_name:
        raise InvalidSetting("A receiver serves at least one inbox.")
    receiver = _Receiver(by_name, verifier, settings or ReceiverSettings())
    app = FastAPI(
        title="Seapost receiver",
        version=metrics.release(),
        description="Takes deliveries and answers each with a durable receipt.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.add_exception_handler(HTTPException, _framework_problem)
    app.add_exception_handler(RequestValidationError, _validation_problem)
    app.add_exception_handler(Exception, _internal_problem)
    app.add_api_route("/livez", receiver.live, methods=["GET"], tags=["health"], summary="Liveness")
    app.add_api_route(
        "/readyz", receiver.ready, methods=["GET"], tags=["health"], summary="Readiness", response_model=None
    )
    app.add_api_route(
        "/metrics", receiver.metrics, methods=["GET"], tags=["health"], summary="Metrics", response_model=None
    )
    app.add_api_route(wire.PATH, receiver.deliver, methods=["POST"], tags=["deliveries"], response_model=None)
    app.add_api_route(wire.RECEIPT_PATH, receiver.read, methods=["POST"], tags=["receipts"], response_model=None)
    describe(app)
    return app


async def _framework_problem(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    headers = dict(error.headers) if isinstance(error, HTTPException) and error.headers else None
    return problem_of_status(status, headers)


async def _validation_problem(_request: Request, _error: Exception) -> Response:
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request")


async def _internal_problem(_request: Request, error: Exception) -> Response:
    reference = new_reference()
    _log.error(LogEvent.REQUEST_FAILED, reference=reference, exc_info=error)
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", reference=reference)
