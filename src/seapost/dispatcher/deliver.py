"""Calls the consumer with a batch of claims and brings back one outcome for each; never raises for a bad peer.

Authority: the fence in the database; here is only decided whether to start a call at all, and when to give it up.
States: claimed → checked (enough lease left, not exhausted, digest agrees) → called → outcomes.
Failures: an exception or a timeout leaves every delivery of the call without an answer, so all become suspects; a
call whose claims are all lost is cancelled and brings nothing; at the order to hurry it is cancelled and given back.
No connection and no transaction is held meanwhile (F81).
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from seapost.dispatcher import policy
from seapost.dispatcher.batch import Batch, Cancelled
from seapost.dispatcher.context import Context
from seapost.dispatcher.renew import Leases
from seapost.dispatcher.settings import DestinationSettings
from seapost.model.delivery import Claim
from seapost.model.outcome import OUTCOMES, ErrorCode, NonRetryable, Outcome, Retryable
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger, new_reference
from seapost.transport.protocol import Transport

CANCEL_SECONDS_MAX: Final = 1.0

_LOG: Final = get_logger("seapost.dispatcher")


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a batch came to.

    Attributes:
        outcomes: one for each claim to settle.
        succeeded: whether the consumer as a whole did its work; None when there was no call to judge.
        lone_retry: whether the call carried one delivery only, and not for the first time.
    """

    outcomes: list[tuple[Claim, Outcome]]
    succeeded: bool | None = None
    lone_retry: bool = False


class Deliverer:
    """Calls one destination's transport."""

    def __init__(self, context: Context, settings: DestinationSettings, transport: Transport, leases: Leases) -> None:
        self._context = context
        self._settings = settings
        self._transport = transport
        self._leases = leases
        self._left_behind: set[asyncio.Future[Sequence[Outcome]]] = set()

    async def run_once(self, batch: Batch) -> Delivered:
        """Check the claims and make the call."""
        if self._context.stopping.requested.is_set() or not batch.may_call(self._context.clock()):
            # Not called: another worker may have the rest of our lease, and the fence decides whether it has (F14).
            return Delivered([(claim, policy.GIVEN_BACK) for claim in batch.claims])
        outcomes: list[tuple[Claim, Outcome]] = []
        callable_claims: list[Claim] = []
        for claim in batch.claims:
            refusal = self._refuse(claim)
            if refusal is None:
                callable_claims.append(claim)
            else:
                outcomes.append((claim, refusal))
        if not callable_claims:
            return Delivered(outcomes)
        answers = await self._call(batch, callable_claims)
        if batch.cancelled is Cancelled.LEASE_LOST:
            return Delivered(outcomes)
        outcomes.extend(zip(callable_claims, answers, strict=True))
        if batch.cancelled is Cancelled.STOPPED:
            return Delivered(outcomes)
        lone_retry = len(callable_claims) == 1 and callable_claims[0].attempt_number > 1
        return Delivered(outcomes, not all(map(policy.accuses_consumer, answers)), lone_retry)

    def _refuse(self, claim: Claim) -> NonRetryable | None:
        """What needs no call to be known."""
        if policy.exhausted(self._settings, claim):
            return NonRetryable(ErrorCode.POLICY_MAX_ATTEMPTS)
        if not hmac.compare_digest(sha256(claim.envelope).digest(), claim.event_digest):
            return NonRetryable(ErrorCode.ENVELOPE_INVARIANT_BROKEN)
        return None

    async def _call(self, batch: Batch, claims: list[Claim]) -> Sequence[Outcome]:
        """One call, with the leases renewed while it runs."""
        started_at = self._context.clock()
        call = asyncio.ensure_future(self._transport.deliver(claims, timeout_seconds=self._settings.timeout_seconds))
        cancelling = asyncio.ensure_future(batch.cancelling.wait())
        batch.call = call
        try:
            with self._leases.running(batch, self._settings):
                await asyncio.wait(
                    {call, cancelling},
                    timeout=self._settings.call_seconds_max,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not call.done():
                    call.cancel()
                    await asyncio.wait({call}, timeout=CANCEL_SECONDS_MAX)
        finally:
            cancelling.cancel()
            self._leave(call)
            self._context.metrics.delivery_seconds(self._settings.name, self._context.clock() - started_at)
        return self._read(batch, call, claims)

    def _leave(self, call: asyncio.Future[Sequence[Outcome]]) -> None:
        """Never wait for ever for a transport that ignores its cancellation; keep it alive and hear its end."""
        if not call.done():
            call.cancel()
            self._left_behind.add(call)
            call.add_done_callback(self._forget)

    def _forget(self, call: asyncio.Future[Sequence[Outcome]]) -> None:
        self._left_behind.discard(call)
        if not call.cancelled():
            call.exception()

    def _read(self, batch: Batch, call: asyncio.Future[Sequence[Outcome]], claims: list[Claim]) -> Sequence[Outcome]:
        """The answers of a call that ended, whatever a transport made of it."""
        if not call.done() or call.cancelled():
            if batch.cancelled is not None:
                return [policy.GIVEN_BACK] * len(claims)
            return self._unanswered(claims, ErrorCode.TIMEOUT, None)
        error = call.exception()
        if error is not None:
            return self._unanswered(claims, ErrorCode.DEPENDENCY_UNAVAILABLE, error)
        answers = call.result()
        if (
            not isinstance(answers, Sequence)
            or len(answers) != len(claims)
            or not all(isinstance(answer, OUTCOMES) for answer in answers)
        ):
            return self._unanswered(claims, ErrorCode.ACK_INVALID, None)
        return answers

    def _unanswered(self, claims: list[Claim], code: ErrorCode, error: BaseException | None) -> list[Outcome]:
        """Every delivery of the call ended without an answer about itself; one log record explains them all."""
        reference = new_reference()
        _LOG.warning(
            LogEvent.TRANSPORT_FAILED,
            destination=self._settings.name,
            code=str(code),
            reference=reference,
            deliveries=len(claims),
            exc_info=error,
        )
        return [Retryable(code, reference, answered=False)] * len(claims)
