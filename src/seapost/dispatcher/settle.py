"""Writes what a batch came to: acknowledge, retry or quarantine, each in one fenced call (DLV-07, DLV-12, DLV-13).

Authority: a receipt counts only when it matches the frozen member and the stored event, here and once more in the
database; the fence decides whether we may say so.
States: outcome → verified → acknowledged | postponed | isolated; sorted by event, so that settles never deadlock (F18).
Failures: `stale`: somebody newer owns the delivery; counted, logged, dropped (CLM-09). `invalid`: our lease, a receipt
that does not match; a second fenced call postpones it with `ack_invalid` (AMB-52). For errors of the database see
`write`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, assert_never
from uuid import UUID

from seapost.contracts.verification import VerifiedReceipt, verify_acknowledgement
from seapost.dispatcher import policy
from seapost.dispatcher.batch import Batch
from seapost.dispatcher.context import Context
from seapost.dispatcher.policy import Isolate, Postpone
from seapost.dispatcher.pulse import Pulse
from seapost.dispatcher.session import Connection
from seapost.dispatcher.settings import DestinationSettings
from seapost.dispatcher.write import Writer, Written
from seapost.model.delivery import Claim, Refusal
from seapost.model.errors import ContractError
from seapost.model.outcome import Acknowledged, ErrorCode, NonRetryable, Outcome, Retryable
from seapost.store import delivery
from seapost.store.delivery import Isolation, Postponement, Settlement
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger, new_reference

VERIFIED_IN_A_ROW: Final = 50

_LOG: Final = get_logger("seapost.dispatcher")

ReceiptKey = tuple[str, str, str]
"""Receipt type, schema version and digest algorithm: one acknowledge call is for one of these."""


@dataclass(slots=True)
class Plan:
    """What is to be written for a batch."""

    settlements: dict[ReceiptKey, list[Settlement]] = field(default_factory=dict[ReceiptKey, list[Settlement]])
    postponements: list[Postponement] = field(default_factory=list[Postponement])
    isolations: list[Isolation] = field(default_factory=list[Isolation])


@dataclass(slots=True)
class Settled:
    """What was written, in deliveries. `invalid` ones were postponed; `stale` and `abandoned` ones are not ours."""

    acknowledged: int = 0
    postponed: int = 0
    isolated: int = 0
    invalid: int = 0
    stale: int = 0
    abandoned: int = 0


class Settler:
    """Settles the batches of one lane."""

    def __init__(self, context: Context, settings: DestinationSettings, pulse: Pulse) -> None:
        self._context = context
        self._settings = settings
        self._writer = Writer(context, settings, pulse)

    async def run_once(self, batch: Batch, outcomes: Sequence[tuple[Claim, Outcome]]) -> Settled:
        """Verify and write the outcomes; claims known to be lost are left out."""
        held = [pair for pair in outcomes if pair[0].fence.event_id not in batch.lost] if batch.lost else list(outcomes)
        held.sort(key=_by_event)
        claims = {claim.fence.event_id: claim for claim, _ in held}
        plan = await self._plan(held)
        settled = Settled()
        for key, settlements in plan.settlements.items():
            acknowledged = await self._writer.write(batch, settlements, partial(self._acknowledge, key))
            settled.acknowledged += len(acknowledged.done)
            settled.invalid += len(acknowledged.invalid)
            if len(acknowledged.done) == len(held):
                self._count("acknowledged", ((claim, None) for claim, _ in held))
            else:
                self._count("acknowledged", ((claims[item.fence.event_id], None) for item in acknowledged.done))
            self._postpone_invalid(plan, claims, acknowledged.invalid)
            _add(settled, acknowledged)
        plan.postponements.sort(key=lambda item: item.fence.event_id.int)
        postponed = await self._writer.write(batch, plan.postponements, self._retry)
        settled.postponed = len(postponed.done)
        self._count("retryable", ((claims[item.fence.event_id], item.code) for item in postponed.done))
        _add(settled, postponed)
        plan.isolations.sort(key=lambda item: item.fence.event_id.int)
        isolated = await self._writer.write(batch, plan.isolations, self._quarantine)
        settled.isolated = len(isolated.done)
        self._count("non_retryable", ((claims[item.fence.event_id], item.code) for item in isolated.done))
        for item in isolated.done:
            self._log_quarantine(claims[item.fence.event_id], item)
        _add(settled, isolated)
        return settled

    async def _plan(self, outcomes: Sequence[tuple[Claim, Outcome]]) -> Plan:
        plan = Plan()
        for position, (claim, outcome) in enumerate(outcomes, start=1):
            match outcome:
                case Acknowledged():
                    verified = self._verify(claim, outcome)
                    if isinstance(verified, VerifiedReceipt):
                        key = (verified.receipt_type, verified.schema_version, verified.algorithm)
                        plan.settlements.setdefault(key, []).append(
                            Settlement(claim.fence, claim.event_digest, verified.ref, verified.candidate)
                        )
                    else:
                        self._decide(plan, claim, verified)
                    if position % VERIFIED_IN_A_ROW == 0:
                        await asyncio.sleep(0)  # other destinations, renewals and notifications get their turn
                case Retryable() | NonRetryable():
                    self._decide(plan, claim, outcome)
                case _:
                    assert_never(outcome)
        return plan

    def _verify(self, claim: Claim, outcome: Acknowledged) -> VerifiedReceipt | Retryable:
        """The receipt if it proves this delivery; else a retry that accuses the consumer, not the event (REF-07)."""
        try:
            return verify_acknowledgement(self._context.receipts, claim, outcome)
        except Exception as error:  # noqa: BLE001 - whatever a peer sends, the loop goes on
            rule = error.rule if isinstance(error, ContractError) else "undecodable"
            return self._accuse(LogEvent.ACK_INVALID, claim, rule, error)

    def _postpone_invalid(self, plan: Plan, claims: dict[UUID, Claim], refusals: list[Refusal]) -> None:
        """What only the database found invalid, which holds the frozen facts (AMB-52)."""
        for refusal in refusals:
            claim = claims[refusal.event_id]
            self._decide(plan, claim, self._accuse(LogEvent.SETTLE_INVALID, claim, "frozen_facts", None))

    def _accuse(self, event: LogEvent, claim: Claim, rule: str, error: Exception | None) -> Retryable:
        """Raise the alarm about a consumer's acknowledgement."""
        reference = new_reference()
        _LOG.error(
            event,
            destination=self._settings.name,
            consumer=claim.member.consumer_name,
            event_id=claim.fence.event_id,
            attempt_id=claim.fence.attempt_id,
            rule=rule,
            reference=reference,
            exc_info=error,
        )
        self._context.metrics.refused(self._settings.name, 1)
        return Retryable(ErrorCode.ACK_INVALID, reference)

    def _decide(self, plan: Plan, claim: Claim, outcome: Retryable | NonRetryable) -> None:
        decision = policy.decide(self._settings, claim, outcome, self._context.rng)
        match decision:
            case Postpone(delay_seconds, code, reference, counted, lost):
                plan.postponements.append(
                    Postponement(claim.fence, delay_seconds, code.value, reference, counted, lost)
                )
            case Isolate(code, reference):
                plan.isolations.append(Isolation(claim.fence, code.value, reference))
            case _:
                assert_never(decision)

    async def _acknowledge(
        self, key: ReceiptKey, connection: Connection, settlements: Sequence[Settlement]
    ) -> list[Refusal]:
        receipt_type, schema_version, algorithm = key
        return await delivery.acknowledge(
            connection,
            destination=self._settings.name,
            receipt_type=receipt_type,
            receipt_schema_version=schema_version,
            receipt_algorithm=algorithm,
            settlements=settlements,
        )

    async def _retry(self, connection: Connection, postponements: Sequence[Postponement]) -> list[Refusal]:
        return await delivery.retry(connection, destination=self._settings.name, postponements=postponements)

    async def _quarantine(self, connection: Connection, isolations: Sequence[Isolation]) -> list[Refusal]:
        return await delivery.quarantine(connection, destination=self._settings.name, isolations=isolations)

    def _count(self, outcome: str, finishes: Iterable[tuple[Claim, str | None]]) -> None:
        """Count finishes by event type, version and code (MET-02, MET-03)."""
        numbers = Counter((claim.member.member_id, code) for claim, code in finishes)
        for (member_id, code), number in numbers.items():
            member = self._context.members[member_id]
            self._context.metrics.settled(
                self._settings.name, member.event_type, member.schema_version, outcome, code, number
            )

    def _log_quarantine(self, claim: Claim, isolation: Isolation) -> None:
        """In sight, without anything of the payload (RTY-05)."""
        _LOG.error(
            LogEvent.DELIVERY_QUARANTINED,
            destination=self._settings.name,
            event_type=claim.member.event_type,
            schema_version=claim.member.schema_version,
            event_id=claim.fence.event_id,
            attempt_id=claim.fence.attempt_id,
            code=isolation.code,
            reference=isolation.reference,
        )


def _by_event(pair: tuple[Claim, Outcome]) -> int:
    return pair[0].fence.event_id.int


def _add(settled: Settled, written: Written[Settlement] | Written[Postponement] | Written[Isolation]) -> None:
    settled.stale += written.stale
    settled.abandoned += written.abandoned
