"""The one transaction of a work: its outcome as documents, written by one SQL function (TX-18 to TX-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oceanway.metering import store
from oceanway.metering.blocking import block
from oceanway.metering.documents import Document, Sealed, named
from oceanway.metering.lanes import COST, ELIGIBILITY, NO_WORK, finish, work_fields
from oceanway.metering.outcomes import Applied, Later, LocalConflict, OwnerConflicting, Processed, Task, Waiting
from seapost.contracts.canonical import encode

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.metering.outcomes import Outcome
    from oceanway.metering.store import Backoff

_WAITING_STATES = {
    "execution_eligibility": "waiting_for_execution",
    "gateway_usage": "waiting_for_gateway_usage",
}


def commit(connection: Connection[Any], task: Task, outcome: Outcome, *, moment: str, backoff: Backoff) -> None:
    """Write what a work came to; the caller owns the transaction.

    Raises:
        Stale: the lease is lost.
        OwnerConflict: metering holds other content under an identity; the detail names the stage.
    """
    match outcome:
        case Waiting():
            _wait(connection, task, outcome, moment)
        case Applied():
            _apply(connection, task, outcome, moment)
        case Processed():
            _process(connection, task, outcome, moment)
        case OwnerConflicting() | LocalConflict():
            made = block(task, outcome, moment)
            store.block(
                connection,
                token=task.token,
                evidence=None if made.evidence is None else made.evidence.data,
                blocked=made.blocked.data,
                state=encode(made.state),
                backoff=backoff,
            )
        case Later():
            store.release(connection, leases=[(task.ref, task.token)], backoff=backoff)


def _wait(connection: Connection[Any], task: Task, outcome: Waiting, moment: str) -> None:
    body = {"kind": ELIGIBILITY, "state": "waiting_for_counterpart", "waitingFor": outcome.waiting_for}
    ended = finish(task.work, task.attempt_number, task.token, body, moment)
    state = {
        "state": _WAITING_STATES[outcome.waiting_for],
        "activeWork": NO_WORK,
        "lastFinishedWork": {"state": "available", **_finished(task, ended)},
    }
    store.wait(connection, token=task.token, finish=ended.data, state=encode(state))


def _apply(connection: Connection[Any], task: Task, outcome: Applied, moment: str) -> None:
    listed = {"settlementInputSnapshotCount": len(outcome.items), "settlementInputSnapshots": outcome.items}
    body = {"kind": ELIGIBILITY, "state": "applied", **listed}
    ended = finish(task.work, task.attempt_number, task.token, body, moment)
    finished = _finished(task, ended)
    generation = finished.pop("workGeneration")
    state = {
        "state": "applied",
        "activeWork": NO_WORK,
        "appliedWorkGeneration": generation,
        **finished,
        **listed,
    }
    store.apply(
        connection,
        token=task.token,
        decision=outcome.decision.data,
        receipts=outcome.receipts,
        meter_events=[one.data for one in outcome.meter_events],
        snapshots=[one.data for one in outcome.snapshots],
        envelopes=outcome.envelopes,
        finish=ended.data,
        state=encode(state),
    )


def _process(connection: Connection[Any], task: Task, outcome: Processed, moment: str) -> None:
    processing = outcome.processing.document
    anchor = named("providerCostAvailabilityProcessing", outcome.processing.quad)
    ended = finish(
        task.work,
        task.attempt_number,
        task.token,
        {"kind": COST, "state": "availability_processed", **anchor},
        moment,
    )
    result = processing["outcome"]["state"]
    state: Document = {
        "state": "availability_processed" if result == "available_applied" else result,
        "processingOutcome": result,
        "activeWork": NO_WORK,
        **_finished(task, ended),
        **anchor,
    }
    if result == "reconciliation_required":
        state["availabilityState"] = "conflicting"
        state["stateReasonCode"] = processing["outcome"]["stateReasonCode"]
    store.process(
        connection,
        token=task.token,
        processing=outcome.processing.data,
        fact=None if outcome.fact is None else outcome.fact.data,
        receipts=outcome.receipts,
        finish=ended.data,
        state=encode(state),
    )


def _finished(task: Task, ended: Sealed) -> Document:
    return {**work_fields(task.work), **named("meteringInputWorkAttemptFinished", ended.quad)}
