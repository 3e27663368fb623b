"""Deliveries over HTTP: one POST for a batch, and a response that is believed only in its exact form.

Only a complete 200 response of type `application/json`, within its size and time, with one result for each
delivery in order, is taken. Everything else is no receipt (DLV-06): `statuses` says what it means instead.
The body is read as it comes, uncompressed, up to a limit, so that an endless, dripping or swollen response
costs a bounded amount of memory and time. Redirects are never followed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self
from urllib.parse import urlsplit

import httpcore
import httpx

from seapost.model.delivery import Claim
from seapost.model.errors import AddressRefused, ContractError, InvalidSetting
from seapost.model.outcome import ErrorCode, Outcome, Retryable
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger, new_reference
from seapost.transport import token
from seapost.transport.address import PUBLIC_ONLY, AddressPolicy
from seapost.transport.connection import CONNECT_SECONDS_MAX, CheckedTransport
from seapost.transport.protocol import DeliveryRequest, pack
from seapost.transport.retry_after import parse_retry_after
from seapost.transport.statuses import NO_RECEIPT, Meaning, meaning_of
from seapost.transport.token import TokenSigner
from seapost.transport.wire import MEDIA_TYPE, PATH, decode_response, encode_request

_log = get_logger("seapost.transport.http")

_NEVER_SENT: Final = (
    AddressRefused,
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
    httpcore.PoolTimeout,
    httpcore.UnsupportedProtocol,
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
)
_TIMEOUTS: Final = (TimeoutError, httpcore.TimeoutException, httpx.TimeoutException)


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What one call may cost.

    Attributes:
        envelope_bytes_max: envelopes in one request; a larger batch goes out in several requests.
        response_bytes_base, response_bytes_per_delivery: together the largest response that is read.
    """

    connections_max: int = 8
    envelope_bytes_max: int = 8_388_608
    response_bytes_base: int = 65_536
    response_bytes_per_delivery: int = 16_384

    def __post_init__(self) -> None:
        """Refuse limits below 1."""
        if (
            min(
                self.connections_max,
                self.envelope_bytes_max,
                self.response_bytes_base,
                self.response_bytes_per_delivery,
            )
            < 1
        ):
            raise InvalidSetting("The limits of an HTTP transport are at least 1.")


DEFAULT_LIMITS: Final = HttpLimits()


class _Unacceptable(Exception):
    """The 200 response is not an answer; the text says why, without quoting it."""


class _Progress:
    """Whether any byte of the request may have reached the consumer."""

    __slots__ = ("is_sent",)

    def __init__(self, *, is_sent: bool) -> None:
        self.is_sent = is_sent

    async def trace(self, name: str, _info: object) -> None:
        """Called by httpcore at each step of the exchange."""
        if name.endswith("send_request_headers.started"):
            self.is_sent = True


class HttpTransport:
    """Posts batches to one receiver.

    Args:
        url: where the receiver listens; without a path, the standard path is used.
        signer: mints the token of each call; None sends none, for receivers that are guarded otherwise.
        policy: where the transport may connect to; by default the public Internet only.
        transport: replaces the network, for a receiver inside the process.

    Raises:
        AddressRefused: the URL has a form that is never allowed.
    """

    def __init__(
        self,
        url: str,
        *,
        signer: TokenSigner | None = None,
        policy: AddressPolicy = PUBLIC_ONLY,
        limits: HttpLimits = DEFAULT_LIMITS,
        ssl_context: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        policy.check_url(url)
        parts = urlsplit(url)
        self._url = parts._replace(path=PATH).geturl() if parts.path in {"", "/"} else url
        self._signer = signer
        self._limits = limits
        self._is_traced = transport is None
        self._client = httpx.AsyncClient(
            transport=transport
            or CheckedTransport(policy, connections_max=limits.connections_max, ssl_context=ssl_context),
            trust_env=False,
            follow_redirects=False,
            headers={"user-agent": "seapost", "accept": MEDIA_TYPE, "accept-encoding": "identity"},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def deliver(self, claims: Sequence[Claim], *, timeout_seconds: float) -> Sequence[Outcome]:
        """One outcome for each claim, in order, within `timeout_seconds`; never raises for a bad peer."""
        outcomes: list[Outcome] = [Retryable(ErrorCode.TIMEOUT)] * len(claims)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        for parcel in pack(claims, envelope_bytes_max=self._limits.envelope_bytes_max):
            answers = await self._call(parcel.request, deadline, timeout_seconds)
            for position, answer in zip(parcel.positions, answers, strict=True):
                outcomes[position] = answer
        return outcomes

    async def _call(self, request: DeliveryRequest, deadline: float, timeout_seconds: float) -> list[Outcome]:
        """The outcomes of one request; every way to fail ends in the same outcome for each delivery."""
        progress = _Progress(is_sent=not self._is_traced)
        try:
            async with asyncio.timeout_at(deadline):
                return await self._exchange(request, progress, timeout_seconds)
        except _NEVER_SENT as error:
            # The consumer was never reached, so no delivery of this batch can have been the cause.
            event = (
                LogEvent.TRANSPORT_ADDRESS_REFUSED if isinstance(error, AddressRefused) else LogEvent.TRANSPORT_FAILED
            )
            outcome = _failed(request, event, Meaning(ErrorCode.DEPENDENCY_UNAVAILABLE, answered=True), error)
        except _TIMEOUTS as error:
            meaning = Meaning(ErrorCode.TIMEOUT, answered=not progress.is_sent)
            outcome = _failed(request, LogEvent.TRANSPORT_FAILED, meaning, error)
        except (_Unacceptable, ContractError) as error:
            outcome = _failed(request, LogEvent.TRANSPORT_RESPONSE_REFUSED, NO_RECEIPT, error)
        except Exception as error:  # noqa: BLE001 - whatever a peer or a library does, the dispatcher goes on
            meaning = Meaning(ErrorCode.DEPENDENCY_UNAVAILABLE, answered=False)
            outcome = _failed(request, LogEvent.TRANSPORT_FAILED, meaning, error)
        return [outcome] * len(request.deliveries)

    async def _exchange(self, request: DeliveryRequest, progress: _Progress, timeout_seconds: float) -> list[Outcome]:
        body = encode_request(request)
        post = self._client.build_request(
            "POST",
            self._url,
            content=body,
            headers=self._headers(request, body),
            timeout=httpx.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS_MAX, timeout_seconds)),
            extensions={"trace": progress.trace},
        )
        response = await self._client.send(post, stream=True)
        try:
            if response.status_code != httpx.codes.OK:
                return [self._refused(request, response)] * len(request.deliveries)
            size_max = self._limits.response_bytes_base + self._limits.response_bytes_per_delivery * len(
                request.deliveries
            )
            answer = await _read(response, size_max)
        finally:
            await response.aclose()
        return decode_response(answer, request, body_bytes_max=size_max)

    def _headers(self, request: DeliveryRequest, body: bytes) -> dict[str, str]:
        headers = {"content-type": MEDIA_TYPE}
        if self._signer is not None:
            bearer = self._signer.mint(
                audience=request.consumer_name,
                scope=token.DELIVER_SCOPE,
                purpose=token.DELIVER_PURPOSE,
                bindings=token.delivery_bindings(
                    destination=request.destination,
                    consumer_name=request.consumer_name,
                    delivery_count=len(request.deliveries),
                    body=body,
                ),
            )
            headers["authorization"] = f"Bearer {bearer}"
        return headers

    def _refused(self, request: DeliveryRequest, response: httpx.Response) -> Retryable:
        """What another status than 200 means for each delivery; the body is not even read."""
        meaning = meaning_of(response.status_code)
        reference = new_reference()
        _log.warning(
            LogEvent.TRANSPORT_RESPONSE_REFUSED,
            destination=request.destination,
            status=response.status_code,
            reference=reference,
        )
        wait = parse_retry_after(response.headers.get("retry-after"), datetime.now(UTC))
        return Retryable(meaning.code, reference, wait, answered=meaning.answered, reached=not meaning.answered)


def _failed(request: DeliveryRequest, event: LogEvent, meaning: Meaning, error: Exception) -> Retryable:
    """The outcome of a call without a believable answer, with the log record it refers to."""
    reference = new_reference()
    reason = str(error) if isinstance(error, _Unacceptable | AddressRefused) else None
    _log.warning(
        event,
        destination=request.destination,
        code=meaning.code,
        deliveries=len(request.deliveries),
        reason=error.rule if isinstance(error, ContractError) else reason,
        reference=reference,
        exc_info=error,
    )
    return Retryable(meaning.code, reference, answered=meaning.answered, reached=not meaning.answered)


async def _read(response: httpx.Response, size_max: int) -> bytes:
    """The whole body, when its type, coding and size are right.

    A connection that closes before the announced end raises the network's own error.
    """
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise _Unacceptable("the response is not application/json")
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise _Unacceptable("the response is compressed, which was not asked for")
    announced = response.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > size_max:
        raise _Unacceptable("the response announces more bytes than allowed")
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > size_max:
            raise _Unacceptable("the response has more bytes than allowed")
    return bytes(body)
