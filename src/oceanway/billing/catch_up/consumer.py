"""The consumer of settlement inputs: it moves the watermark of a dimension and makes the next work (section 12.1).

Authority: one transaction of billing. It holds the finalization fence, the watermarks of the reservation and the
catch-up fence of the dimension, in that order, as workers and commands do, so the phase it decides on cannot change:

| Finalization | Written | Receipt |
|---|---|---|
| not finalized | watermark, trigger and work of the next finalization generation | `finalization_work_scheduled` |
| in a case | watermark | `held_for_resolution` |
| finalized | watermark, catch-up fence reopened, its next work | `settlement_catch_up_scheduled` |
| not bound yet | watermark | none: retried as `fence_unbindable` (CAT-07) |

The receipt only proves that the trigger was accepted; it is no validation receipt and books nothing (RCP-56, CAT-17).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from oceanway.billing import store_settlement as store
from oceanway.billing.catch_up.decide import (
    QUINT,
    Advanced,
    AlreadyObserved,
    Conflict,
    Unbound,
    decide,
    examine,
)
from oceanway.billing.catch_up.works import PLACE, SUBJECT, optional, reopening_work, started, superseded_finish
from oceanway.billing.finalization.schedule import FenceState, next_generation
from oceanway.billing.store_settlement import Advance, LockedDimension
from oceanway.contracts.events.metering import SettlementInputCurrentChanged
from oceanway.contracts.identity import quad_fields
from oceanway.contracts.quints import SettlementInputQuint, SettlementInputSnapshotItem
from oceanway.contracts.receipts.catch_up import (
    BillingSettlementCatchUpConsumerReceipt,
    DurabilityFinalizationWorkScheduled,
    DurabilityHeldForResolution,
    DurabilitySettlementCatchUpScheduled,
    OutcomeAlreadyObserved,
    OutcomeWatermarkAdvanced,
)
from oceanway.contracts.receipts.registry import RECEIPTS
from seapost.inbox.deciding import Arrived, Deciding, DecidingInbox, Round
from seapost.model.errors import Reject, Retry
from seapost.model.outcome import ErrorCode

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.reads.client import Reader

CONSUMER: Final = "billing_settlement_catch_up_consumer"
DESTINATION: Final = "billing_settlement_catch_up"

Durability = DurabilityFinalizationWorkScheduled | DurabilitySettlementCatchUpScheduled | DurabilityHeldForResolution


class CatchUpInbox(DecidingInbox):
    """Takes the locks of all events of a transaction before the first is handled, each kind in one order (AMB-28)."""

    def order(self, item: Arrived, /) -> tuple[object, ...]:
        """By reservation and dimension, as locks are taken, and the inputs of one dimension from old to new."""
        event = cast("SettlementInputCurrentChanged", item.event)
        return (event.billing_reservation_id, event.dimension_id, event.settlement_input_state_version)

    def begin(self, transaction: Connection[Any], items: Sequence[Arrived], /) -> Round | None:
        """See `DecidingInbox`."""
        events = [cast("SettlementInputCurrentChanged", item.event) for item in items]
        if len(events) > 1:
            store.hold(
                transaction,
                sorted({event.billing_reservation_id for event in events}),
                sorted({event.dimension_id for event in events}),
            )
        return None


def build_catch_up_inbox(reader: Reader) -> DecidingInbox:
    """The consumer of settlement inputs; all it decides on is in the event and in billing, so nothing is read."""
    _ = reader
    inbox = build_receipt_inbox()
    _ = inbox.consumer(SettlementInputCurrentChanged)(accept)
    return inbox


def build_receipt_inbox() -> CatchUpInbox:
    """The inbox without its handler, as reads of receipts need it."""
    return CatchUpInbox(
        CONSUMER,
        destination=DESTINATION,
        receipt=BillingSettlementCatchUpConsumerReceipt,
        moment="committed_at",
        receipts=RECEIPTS,
    )


def accept(
    transaction: Connection[Any], event: SettlementInputCurrentChanged, context: Deciding
) -> BillingSettlementCatchUpConsumerReceipt | Retry:
    """Handle one settlement input in the caller's transaction.

    Returns:
        The receipt, or the `Retry` of an event whose reservation is not bound yet: its watermark is committed.

    Raises:
        Reject: the event contradicts itself or what was accepted before (CAT-10).
    """
    broken = examine(event, context.received)
    if broken is not None:
        raise Reject(broken.reason, code=broken.code)
    locked = store.lock(transaction, event.billing_reservation_id, event.dimension_id)
    decision = decide(event, fence=locked.fence, watermark=locked.watermark)
    match decision:
        case Conflict():
            raise Reject(decision.reason, code=decision.code)
        case AlreadyObserved():
            outcome = OutcomeAlreadyObserved(
                inbox_revision=decision.inbox_revision, highest_observed_settlement_input=decision.highest
            )
            return _receipt(event, context, outcome)
        case Unbound():
            if decision.is_newer:
                change = Advance(event.to_json(), decision.expected_inbox_revision, "unbound")
                _ = store.advance(transaction, change)
            return Retry("The reservation is not bound yet", code=ErrorCode.FENCE_UNBINDABLE)
        case Advanced():
            change, durability = _prepared(event, decision, locked, context.committed_at)
            revision = store.advance(transaction, change)
            outcome = OutcomeWatermarkAdvanced(inbox_revision=revision, durability=durability)
            return _receipt(event, context, outcome)


def _prepared(
    event: SettlementInputCurrentChanged, decision: Advanced, locked: LockedDimension, now: str
) -> tuple[Advance, Durability]:
    """What the event writes, and what its receipt says of it."""
    assert locked.fence is not None  # noqa: S101 - what is not bound does not advance
    match decision.mode:
        case "held":
            case_of: dict[str, Any] = locked.fence["reconciliation"]
            change = Advance(event.to_json(), decision.expected_inbox_revision, "held")
            return change, DurabilityHeldForResolution(
                finalization_fence_revision=locked.fence["fenceRevision"],
                reconciliation_case_ref=case_of["caseRef"],
                reconciliation_generation=case_of["generation"],
                expected_resolution_revision=1,
            )
        case "finalization":
            return _finalization(event, decision, locked.fence, now)
        case "catch_up":
            return _catch_up(event, decision, locked, now)


def _finalization(
    event: SettlementInputCurrentChanged, decision: Advanced, fence: Mapping[str, Any], now: str
) -> tuple[Advance, Durability]:
    """The next generation of the finalization absorbs the input (CAT-03, AMB-46)."""
    state = FenceState.of(fence).with_settlement(_item(event))
    made = next_generation(state, created_at=now)
    change = Advance(
        event.to_json(),
        decision.expected_inbox_revision,
        "finalization",
        expected_revision=state.revision,
        trigger=made.trigger.canonical(),
        work=made.work.canonical(),
        superseded=None if made.superseded is None else made.superseded.canonical(),
    )
    return change, DurabilityFinalizationWorkScheduled(
        finalization_fence_revision=made.trigger.finalization_fence_revision,
        work_generation=made.work.work_generation,
        **quad_fields("billing_finalization_trigger_snapshot", made.trigger.quad()),
        **quad_fields("billing_finalization_work", made.work.quad()),
    )


def _catch_up(
    event: SettlementInputCurrentChanged, decision: Advanced, locked: LockedDimension, now: str
) -> tuple[Advance, Durability]:
    """The dimension's fence is reopened, or created, for this input (CAT-05, CAT-08)."""
    assert locked.catch_up is not None  # noqa: S101 - a finalized reservation has its catch-up read with it
    before = locked.catch_up
    generation: int = before["latestWorkGeneration"] + 1
    work = reopening_work(
        {name: getattr(event, name) for name in (*SUBJECT.values(), *PLACE.values())},
        generation=generation,
        evaluated=optional(before["lastEvaluatedInput"]),
        target=_quint(event),
        revision=before["stateRevision"],
        created_at=now,
    )
    attempt = started(before["startedWork"])
    finish = None if attempt is None else superseded_finish(attempt, generation, now).canonical()
    change = Advance(
        event.to_json(),
        decision.expected_inbox_revision,
        "catch_up",
        expected_revision=before["fenceRevision"],
        work=work.canonical(),
        superseded=finish,
    )
    return change, DurabilitySettlementCatchUpScheduled(
        settlement_catch_up_fence_revision=max(before["fenceRevision"], 1) + 1,
        work_generation=generation,
        billing_catch_up_validation_operation_id=work.billing_catch_up_validation_operation_id,
        **quad_fields("billing_settlement_catch_up_work", work.quad()),
    )


def _receipt(
    event: SettlementInputCurrentChanged, context: Deciding, outcome: OutcomeWatermarkAdvanced | OutcomeAlreadyObserved
) -> BillingSettlementCatchUpConsumerReceipt:
    return BillingSettlementCatchUpConsumerReceipt.assemble(
        **context.common,
        **{name: getattr(event, name) for name in (*SUBJECT.values(), *PLACE.values())},
        settlement_economic_identity=event.settlement_economic_identity,
        event_settlement_input=_quint(event),
        outcome=outcome,
    )


def _quint(event: SettlementInputCurrentChanged) -> SettlementInputQuint:
    return SettlementInputQuint(**{name: getattr(event, name) for name in QUINT.values()})


def _item(event: SettlementInputCurrentChanged) -> SettlementInputSnapshotItem:
    return SettlementInputSnapshotItem(
        run_step_id=event.run_step_id,
        execution_attempt_id=event.execution_attempt_id,
        charge_dimension_key=event.charge_dimension_key,
        ref=event.settlement_input_snapshot_ref,
        schema_version=event.settlement_input_snapshot_schema_version,
        digest_algorithm_version=event.settlement_input_snapshot_digest_algorithm_version,
        digest=event.settlement_input_snapshot_digest,
        state_version=event.settlement_input_state_version,
    )
