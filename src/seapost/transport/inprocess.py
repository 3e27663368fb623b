"""The consumer in the same process: its receiver is called directly, with the same request as over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from seapost.model.delivery import Claim
from seapost.model.outcome import OUTCOMES, ErrorCode, Outcome, Retryable
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger, new_reference
from seapost.transport.protocol import DeliveryRequest, Receiver, pack

_log = get_logger("seapost.transport.inprocess")


class InProcessTransport:
    """Calls an injected receiver, for instance `Receiving.receive` of an inbox.

    A handler that runs in a thread cannot be stopped by a timeout; its transaction then ends on its own,
    and the redelivery finds its receipt (DLV-14).
    """

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    async def deliver(self, claims: Sequence[Claim], *, timeout_seconds: float) -> Sequence[Outcome]:
        """One outcome for each claim, in order; never raises for a bad receiver."""
        outcomes: list[Outcome] = [Retryable(ErrorCode.TIMEOUT, answered=False)] * len(claims)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        for parcel in pack(claims):
            answers = await self._call(parcel.request, deadline)
            for position, answer in zip(parcel.positions, answers, strict=True):
                outcomes[position] = answer
        return outcomes

    async def aclose(self) -> None:
        """Nothing is held: the receiver belongs to whoever made it."""

    async def _call(self, request: DeliveryRequest, deadline: float) -> Sequence[Outcome]:
        number = len(request.deliveries)
        try:
            async with asyncio.timeout_at(deadline):
                answers = list(await self._receiver(request))
        except TimeoutError:
            return [Retryable(ErrorCode.TIMEOUT, answered=False)] * number
        except Exception as error:  # noqa: BLE001 - whatever a receiver does, the dispatcher goes on
            reference = new_reference()
            _log.error(LogEvent.TRANSPORT_FAILED, destination=request.destination, reference=reference, exc_info=error)
            return [Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, reference, answered=False)] * number
        if len(answers) != number or not all(isinstance(answer, OUTCOMES) for answer in answers):
            reference = new_reference()
            _log.error(LogEvent.TRANSPORT_RESPONSE_REFUSED, destination=request.destination, reference=reference)
            return [Retryable(ErrorCode.ACK_INVALID, reference, answered=False)] * number
        return answers
