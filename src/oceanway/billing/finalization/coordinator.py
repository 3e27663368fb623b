"""The finalization coordinator's consumer: two kinds of event move a fence (section 11, FIN-01 to FIN-15).

What each event may end in:

| Event | Fence | End |
|---|---|---|
| closure | no closure watermark | watermark, next generation, `work_scheduled` |
| closure | another closure is applied | rejected: a run closes once (FIN-08) |
| resolution | in the case that it resolves | watermark, next generation, the case is left, `work_scheduled` |
| resolution | shows it as applied, but this event has no receipt | `already_superseded` (FIN-11, AMB-16) |
| any | not bound, or neither current nor stale | retried, without a receipt (FIN-13, AMB-33) |

Redelivery never reaches these functions: the inbox answers it with the first receipt (RCP-40).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic.alias_generators import to_camel

from oceanway.billing import store_finalization as store
from oceanway.billing.finalization.schedule import FenceState, next_generation
from oceanway.contracts.events.billing import FinalizationReconciliationResolutionAppliedEvent
from oceanway.contracts.events.execution import RunFinalizationClosed
from oceanway.contracts.facts.resolution import FinalizationReconciliationResolutionApplied
from oceanway.contracts.identity import quad_fields, quad_of
from oceanway.contracts.reads_execution import READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING, RunFinalizationQuestion
from oceanway.contracts.receipts.coordinator import (
    BillingFinalizationCoordinatorConsumerReceipt,
    OutcomeAlreadySuperseded,
    OutcomeWorkScheduled,
    SourceExecutionClosure,
    SourceFinalizationReconciliationResolution,
)
from oceanway.contracts.receipts.registry import RECEIPTS
from oceanway.contracts.works.finalization import ClosureWatermarkApplied, ResolutionWatermarkApplied
from seapost.contracts.digest import ALGORITHM
from seapost.inbox.deciding import Arrived, Deciding, DecidingInbox, Round
from seapost.model.errors import Reject, Retry
from seapost.model.outcome import ErrorCode

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.billing.finalization.schedule import Scheduled
    from oceanway.reads.client import Reader

CONSUMER: Final = "billing_finalization_coordinator_consumer"
DESTINATION: Final = "billing_finalization_coordinator"


_SUBJECT: Final = (
    "tenantKind",
    "tenantId",
    "workspaceId",
    "projectId",
    "billingAccountId",
    "billingReservationId",
    "runId",
)


class CoordinatorInbox(DecidingInbox):
    """Takes the locks of all events of a transaction before the first is handled, in one order (AMB-28)."""

    def begin(self, transaction: Connection[Any], items: Sequence[Arrived], /) -> Round | None:
        """See `DecidingInbox`."""
        if len(items) > 1:
            events = [cast("RunFinalizationClosed", item.event) for item in items]
            store.hold_fences(transaction, sorted({event.billing_reservation_id for event in events}))
        return None


def build_coordinator_inbox(reader: Reader) -> DecidingInbox:
    """The consumer of closures and resolutions; `reader` verifies a closure with execution before the transaction."""
    inbox = CoordinatorInbox(
        CONSUMER,
        destination=DESTINATION,
        receipt=BillingFinalizationCoordinatorConsumerReceipt,
        moment="committed_at",
        receipts=RECEIPTS,
    )

    def verify(items: Sequence[Arrived]) -> Sequence[object]:
        return closures_verified(reader, [item.event for item in items])  # pyright: ignore[reportArgumentType]

    _ = inbox.consumer(RunFinalizationClosed, prepare=verify)(apply_closure)
    _ = inbox.consumer(FinalizationReconciliationResolutionAppliedEvent)(apply_resolution)
    return inbox


def closures_verified(reader: Reader, events: Sequence[RunFinalizationClosed]) -> list[Retry | Reject | None]:
    """What execution says about the closures of these events: None lets the event in, else its outcome.

    A conflict at the owner lets it in too: only the worker may decide about one (FIN-07).
    """
    questions = list(map(_closure_question, events))
    answers = reader.call(READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING, questions)
    return [_verdict(event, one.answer) for event, one in zip(events, answers, strict=True)]


def _closure_question(event: RunFinalizationClosed) -> RunFinalizationQuestion:
    names = (name for name in RunFinalizationQuestion.model_fields if name != "operation_id")
    return RunFinalizationQuestion(
        **{name: getattr(event, name) for name in names}, operation_id=event.closure_operation_id
    )


def _verdict(event: RunFinalizationClosed, answer: Any) -> Retry | Reject | None:  # noqa: ANN401 - a closed union
    match answer.result:
        case "found":
            fact, attempts = answer.fact, answer.attempt_set_manifest
            same = (
                fact.quad() == quad_of(event, "run_execution_finalization")
                and attempts.quad() == quad_of(event, "attempt_set_manifest")
                and attempts.attempt_count == event.attempt_count
            )
            return None if same else Reject("execution holds another closure", code=ErrorCode.DIGEST_CONFLICT)
        case "conflicting":
            return None
        case _:
            return Retry("execution does not show this closure yet", code=ErrorCode.OWNER_UNREADABLE)


def apply_closure(
    transaction: Connection[Any], event: RunFinalizationClosed, context: Deciding
) -> BillingFinalizationCoordinatorConsumerReceipt:
    """Apply the only closure event of a run (TX-22)."""
    locked = store.lock_for_event(transaction, event.billing_reservation_id, None)
    if locked is None:
        raise Retry("the reservation is not admitted yet", code=ErrorCode.FENCE_UNBINDABLE)
    state = FenceState.of(locked.state)
    _require_subject(event, state)
    admitted = (state.run_admission_manifest_ref, state.run_admission_manifest_digest)
    if (event.run_admission_manifest_ref, event.run_admission_manifest_digest) != admitted:
        raise Reject("the run was admitted with another manifest", code=ErrorCode.DIGEST_CONFLICT)
    if state.closure.state != "none":
        raise Reject("another closure event was applied to this run", code=ErrorCode.IDENTITY_CONFLICT)
    if state.state in {"reconciliation_required", "finalized"}:
        raise Retry("a fence without a closure is in a case or finalized", code=ErrorCode.FENCE_UNBINDABLE)
    scheduled = next_generation(
        state,
        created_at=context.committed_at,
        closure=ClosureWatermarkApplied(
            closure_event_id=str(context.received.event_id),
            event_envelope_digest_algorithm_version=ALGORITHM,
            event_envelope_sha256=context.envelope_sha256,
            **quad_fields("run_execution_finalization", quad_of(event, "run_execution_finalization")),
        ),
    )
    receipt = _receipt(context, SourceExecutionClosure.of(event), _work_scheduled(scheduled))
    store.apply_closure(
        transaction,
        expected_revision=state.revision,
        trigger=scheduled.trigger.canonical(),
        work=scheduled.work.canonical(),
        superseded=None if scheduled.superseded is None else scheduled.superseded.canonical(),
        receipt=_receipt_quad(receipt),
    )
    return receipt


def apply_resolution(
    transaction: Connection[Any], event: FinalizationReconciliationResolutionAppliedEvent, context: Deciding
) -> BillingFinalizationCoordinatorConsumerReceipt:
    """Apply the resolution of a case (TX-23), or say that its re-evaluation was ordered before."""
    locked = store.lock_for_event(transaction, event.billing_reservation_id, event.resolution_operation_id)
    if locked is None or locked.resolution is None:
        raise Retry("the fence or its resolution is not readable yet", code=ErrorCode.FENCE_UNBINDABLE)
    state = FenceState.of(locked.state)
    _require_subject(event, state)
    fact = FinalizationReconciliationResolutionApplied.decode(locked.resolution)
    _require_fact(event, fact, state)
    if locked.resolution_event_id != context.received.event_id:
        raise Reject("the resolution has another event", code=ErrorCode.IDENTITY_CONFLICT)
    source = SourceFinalizationReconciliationResolution.of(event)
    if is_superseded(state, event.reconciliation_generation):
        outcome = OutcomeAlreadySuperseded(finalization_fence_revision=state.revision)
        return _receipt(context, source, outcome)
    if (state.state, state.generation) != ("reconciliation_required", event.reconciliation_generation):
        raise Retry("the fence is not in the case of this resolution", code=ErrorCode.FENCE_UNBINDABLE)
    if state.identity is None or state.identity.quad() != quad_of(event, "finalization_case_identity_reservation"):
        raise Reject("the case has another identity", code=ErrorCode.IDENTITY_CONFLICT)
    scheduled = next_generation(
        state,
        created_at=context.committed_at,
        resolution=ResolutionWatermarkApplied(
            reconciliation_case_ref=event.reconciliation_case_ref,
            reconciliation_generation=event.reconciliation_generation,
            resolution_revision=event.resolution_revision,
            **quad_fields("finalization_reconciliation_resolution_applied", fact.quad()),
        ),
    )
    store.apply_resolution_watermark(
        transaction,
        expected_revision=state.revision,
        trigger=scheduled.trigger.canonical(),
        work=scheduled.work.canonical(),
    )
    return _receipt(context, source, _work_scheduled(scheduled))


def is_superseded(state: FenceState, generation: int) -> bool:
    """Whether the fence shows the resolution of this case generation as applied (RCP-47, FIN-12)."""
    return isinstance(state.resolution, ResolutionWatermarkApplied) and (
        state.resolution.reconciliation_generation >= generation
    )


def _require_subject(event: Any, state: FenceState) -> None:  # noqa: ANN401 - either event
    stated = event.to_json()
    if any(stated.get(name) != state.subject.get(name) for name in _SUBJECT):
        raise Reject("the event is about another subject than the fence", code=ErrorCode.IDENTITY_CONFLICT)


def _require_fact(
    event: FinalizationReconciliationResolutionAppliedEvent,
    fact: FinalizationReconciliationResolutionApplied,
    state: FenceState,
) -> None:
    """Compare the event with the fact it announces, field by field (FIN-09, RCP-44)."""
    written, stated = fact.to_json(), event.to_json()
    if event.billing_finalization_fence_id != state.fence_id or any(
        written.get(name) != value for name, value in stated.items()
    ):
        raise Reject("the event differs from its resolution", code=ErrorCode.DIGEST_CONFLICT)


def _receipt(
    context: Deciding,
    source: SourceExecutionClosure | SourceFinalizationReconciliationResolution,
    outcome: OutcomeWorkScheduled | OutcomeAlreadySuperseded,
) -> BillingFinalizationCoordinatorConsumerReceipt:
    known = BillingFinalizationCoordinatorConsumerReceipt.model_fields
    common = {name: value for name, value in context.common.items() if name in known}  # the source names the event type
    return BillingFinalizationCoordinatorConsumerReceipt.assemble(**common, source=source, outcome=outcome)


def _work_scheduled(scheduled: Scheduled) -> OutcomeWorkScheduled:
    return OutcomeWorkScheduled(
        finalization_fence_revision=scheduled.trigger.finalization_fence_revision,
        work_generation=scheduled.trigger.work_generation,
        **quad_fields("billing_finalization_trigger_snapshot", scheduled.trigger.quad()),
        **quad_fields("billing_finalization_work", scheduled.work.quad()),
    )


def _receipt_quad(receipt: BillingFinalizationCoordinatorConsumerReceipt) -> dict[str, str]:
    fields = quad_fields("billing_finalization_coordinator_consumer_receipt", receipt.quad())
    return {to_camel(name): value for name, value in fields.items()}
