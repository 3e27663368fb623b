"""Works, receipts and transitions as documents: what follows from what, and which mixtures do not exist."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import pytest

from oceanway.billing.catch_up.decide import Advanced, AlreadyObserved, Conflict, Unbound, decide, examine
from oceanway.billing.catch_up.works import (
    Attempt,
    OpenedDimension,
    opening_works,
    rebased_finish,
    reopening_work,
    successor_work,
    superseded_finish,
)
from oceanway.billing.transitions.documents import Dimension, validation_for
from oceanway.contracts.events.metering import SettlementInputCurrentChanged
from oceanway.contracts.facts.settlement import SettlementInputSnapshot
from oceanway.contracts.identity import quint_fields, quint_of
from oceanway.contracts.quints import Absent, SettlementInputQuint, SettlementInputSnapshotItem
from oceanway.contracts.receipts.catch_up import BillingSettlementCatchUpConsumerReceipt
from oceanway.contracts.works.catch_up import BillingSettlementCatchUpWork
from seapost.contracts.envelope import read_envelope
from seapost.inbox.received import Received
from seapost.model.errors import ContractError, DigestMismatch
from tests.kit.oceanway.billing_settlement_facts import NOW, STEP, Run, Told

LATER = "2026-03-02T08:00:00.000000Z"
NAMES = ("settlement_input_snapshot", "settlement_input_state_version")


def quint(snapshot: SettlementInputSnapshot) -> SettlementInputQuint:
    """The five fields of an input."""
    made = quint_of(snapshot, NAMES[0], state_version=NAMES[1])
    return SettlementInputQuint(**quint_fields(NAMES[0], made, state_version=NAMES[1]))


def payload(told: Told) -> SettlementInputCurrentChanged:
    """What an event says."""
    return SettlementInputCurrentChanged.decode(read_envelope(told.envelope).payload)


def watermark(run: Run, snapshot: SettlementInputSnapshot, revision: int = 1) -> dict[str, Any]:
    """A watermark as PostgreSQL puts it together."""
    place = {name: run.place()[python] for name, python in _PLACE.items()}
    return {
        **quint(snapshot).to_json(),
        **place,
        "inboxRevision": revision,
        "settlementEconomicIdentity": run.economic("tokens").to_json(),
    }


_PLACE = {
    "billingReservationId": "billing_reservation_id",
    "billingAccountId": "billing_account_id",
    "runId": "run_id",
    "runStepId": "run_step_id",
    "executionAttemptId": "execution_attempt_id",
    "chargeDimensionKey": "charge_dimension_key",
}


def fence(run: Run, state: str = "pending") -> dict[str, Any]:
    """A finalization fence, as far as a decision reads it."""
    subject = {
        "tenantKind": "organization",
        "tenantId": "tenant-1",
        "workspaceId": "workspace-1",
        "billingAccountId": run.account,
        "billingReservationId": run.reservation,
        "runId": run.run,
    }
    return {"subject": subject, "state": state, "currency": "EUR"}


@pytest.mark.req("CAT-01", "AMB-07", "AMB-36", "RCP-55", "CAT-07")
def test_the_watermark_and_the_predecessor_decide() -> None:
    """Lower, equal, next and later inputs, before and after the reservation is bound."""
    run = Run()
    events = [payload(run.measure(quantity)) for quantity in ("1", "2", "3")]
    first, second, third = run.snapshots["tokens"]
    bound, at_second = fence(run), watermark(run, second, 4)
    assert decide(events[0], fence=bound, watermark=None) == Advanced("finalization", 0, 1)
    assert decide(events[2], fence=bound, watermark=None) == Advanced("finalization", 0, 1)
    assert decide(events[2], fence=fence(run, "finalized"), watermark=at_second) == Advanced("catch_up", 4, 5)
    assert decide(events[2], fence=bound, watermark=watermark(run, first)) == Advanced("finalization", 1, 2)
    held = decide(events[1], fence=fence(run, "reconciliation_required"), watermark=at_second)
    assert held == Advanced("held", 4, 4)
    assert decide(events[0], fence=bound, watermark=at_second) == AlreadyObserved(4, quint(second))
    assert decide(events[0], fence=None, watermark=at_second) == Unbound(4, is_newer=False)
    assert decide(events[2], fence=None, watermark=at_second) == Unbound(4, is_newer=True)
    other = run.snapshot("tokens", "9", first, salt="other")
    follower = payload(run.event_of(run.snapshot("tokens", "9", other)))
    assert third.settlement_input_state_version == follower.settlement_input_state_version
    for bound_or_not in (bound, None):
        verdicts = [
            decide(payload(run.event_of(other)), fence=bound_or_not, watermark=at_second),
            decide(follower, fence=bound_or_not, watermark=at_second),
        ]
        assert [one.code for one in verdicts if isinstance(one, Conflict)] == ["digest_conflict"] * 2


@pytest.mark.req("CAT-01", "CAT-10")
def test_an_envelope_that_contradicts_its_payload_is_a_conflict() -> None:
    """Aggregate kind, identifier and revision, producer and tenant."""
    run = Run()
    told = run.measure("1")
    event, envelope = payload(told), read_envelope(told.envelope)
    assert examine(event, Received.of(envelope, 1)) is None
    other = read_envelope(Run().measure("1").envelope)
    broken = examine(event, Received.of(other, 1))
    assert broken is not None
    assert broken.code == "envelope_invariant_broken"


@pytest.mark.req("REF-46", "REF-47", "CAT-19", "CAT-22", "CAT-08")
def test_works_follow_from_their_basis_alone() -> None:
    """The same basis makes the same work at any time; its successor has the next generation and another operation."""
    run = Run()
    _ = run.measure("1"), run.measure("2")
    first, second = run.snapshots["tokens"]

    def make(revision: int, now: str) -> BillingSettlementCatchUpWork:
        return reopening_work(
            {**run.place(), "project_id": None},
            generation=3,
            evaluated=Absent(),
            target=quint(second),
            revision=revision,
            created_at=now,
        )

    work = make(0, NOW)
    assert work.quad() == make(0, LATER).quad()
    assert work.quad() != make(1, NOW).quad()
    successor = successor_work(work, state_revision=1, created_at=NOW)
    assert successor.work_generation == 4
    assert successor.basis.last_evaluated_input.to_json() == {"state": "present", **quint(second).to_json()}
    assert successor.billing_catch_up_validation_operation_id != work.billing_catch_up_validation_operation_id
    attempt = Attempt(work, 2, 77)
    finish = rebased_finish(attempt, successor, NOW, is_changed=True)
    outcome = cast("Any", finish.outcome)
    assert outcome.successor_work_generation == 4
    assert outcome.successor_billing_settlement_catch_up_work_digest == successor.quad().digest
    late = superseded_finish(attempt, 5, LATER)
    assert late.quad() == superseded_finish(attempt, 5, NOW).quad()
    assert late.billing_settlement_catch_up_work_attempt_finished_ref == (
        finish.billing_settlement_catch_up_work_attempt_finished_ref
    )
    item = SettlementInputSnapshotItem(
        run_step_id=STEP,
        execution_attempt_id=run.attempt,
        charge_dimension_key="tokens",
        ref=first.settlement_input_snapshot_ref,
        schema_version="1",
        digest_algorithm_version="jcs-sha256-v1",
        digest=first.quad().digest,
        state_version=1,
    )
    opened = [OpenedDimension(STEP, run.attempt, "tokens", item, amount) for amount in (Decimal("1.50"), None)]
    opening = opening_works(fence(run)["subject"], opened, created_at=NOW)
    assert [one["settledAmount"] for one in opening.dimension_states] == ["1.5", "0"]
    assert [one["lastEvaluatedInput"]["state"] for one in opening.dimension_states] == ["present", "none"]
    decoded = BillingSettlementCatchUpWork.decode(opening.works[0])
    assert (decoded.work_generation, decoded.basis.dimension_state_revision) == (1, 0)


@pytest.mark.req("CASE-32", "CASE-33", "NEG-32", "TST-08")
def test_a_validation_operation_belongs_to_one_revision_and_basis() -> None:
    """The logical operation is stable over a rebase, the validation operation is not."""
    run = Run()
    _ = run.measure("1"), run.measure("2")
    document = {
        "stateRevision": 1,
        "settledAmount": "1",
        "waivedAmount": "0",
        "exposureState": "none",
        "exposureAmount": "0",
        "exposureCaseRef": None,
        "exposureOpeningRevision": None,
        "lastEvaluatedInput": {"state": "none"},
        "lastEventId": "018f0000-0000-7000-8000-000000000000",
    }
    identity = {**run.place(), "project_id": None}
    target = quint(run.snapshots["tokens"][1])
    before = validation_for(Dimension.of(document, identity, run.economic("tokens")), target)
    rebased = Dimension.of({**document, "stateRevision": 2}, identity, run.economic("tokens"))
    after = validation_for(rebased, target)
    assert before.logical_operation_id == after.logical_operation_id
    assert before.operation_id != after.operation_id


def _receipt(run: Run, outcome: dict[str, Any]) -> dict[str, Any]:
    subject = fence(run)["subject"]
    return {
        "billingSettlementCatchUpConsumerReceiptRef": "receipt",
        "billingSettlementCatchUpConsumerReceiptSchemaVersion": "1",
        "billingSettlementCatchUpConsumerReceiptDigestAlgorithmVersion": "jcs-sha256-v1",
        "billingSettlementCatchUpConsumerReceiptDigest": "0" * 64,
        "destination": "billing_settlement_catch_up",
        "consumerName": "billing_settlement_catch_up_consumer",
        "eventId": "018f0000-0000-7000-8000-000000000000",
        "eventType": "metering.settlement-input.current-changed@1",
        "eventSchemaVersion": "1",
        "eventEnvelopeDigestAlgorithmVersion": "jcs-sha256-v1",
        "eventEnvelopeSha256": "a" * 64,
        **subject,
        "runStepId": STEP,
        "executionAttemptId": run.attempt,
        "chargeDimensionKey": "tokens",
        "settlementEconomicIdentity": run.economic("tokens").to_json(),
        "eventSettlementInput": quint(run.snapshots["tokens"][0]).to_json(),
        "outcome": outcome,
        "committedAt": NOW,
    }


@pytest.mark.req("NEG-25", "RCP-53", "RCP-54", "RCP-55")
def test_a_receipt_mixes_no_branches() -> None:
    """Held with a work, observed with a durability or at a higher revision, an unknown state: no such receipt."""
    run = Run()
    _ = run.measure("1"), run.measure("2")
    held = {
        "state": "held_for_resolution",
        "finalizationFenceRevision": 2,
        "reconciliationCaseRef": "case",
        "reconciliationGeneration": 1,
        "expectedResolutionRevision": 1,
    }
    advanced = {"kind": "watermark_advanced", "inboxRevision": 1}
    observed = {"kind": "already_observed", "inboxRevision": 1}
    older, newer = (quint(one).to_json() for one in run.snapshots["tokens"])
    wrong: list[dict[str, Any]] = [
        {**advanced, "durability": {**held, "workGeneration": 1}},
        {**advanced, "durability": {**held, "billingCatchUpValidationOperationId": "operation"}},
        {**advanced, "durability": {**held, "expectedResolutionRevision": 2}},
        {**advanced, "durability": {**held, "state": "unknown"}},
        {**advanced, "durability": held, "highestObservedSettlementInput": newer},
        {**observed, "highestObservedSettlementInput": newer, "durability": held},
        {**observed, "highestObservedSettlementInput": older},
        {**observed},
    ]
    for outcome in wrong:
        with pytest.raises(ContractError) as refused:
            _ = BillingSettlementCatchUpConsumerReceipt.decode(_receipt(run, outcome))
        assert not isinstance(refused.value, DigestMismatch), outcome
    with pytest.raises(DigestMismatch):  # only the made-up digest is wrong here
        _ = BillingSettlementCatchUpConsumerReceipt.decode(
            _receipt(run, {**observed, "highestObservedSettlementInput": newer})
        )
