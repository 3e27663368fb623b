"""The coordinator's consumer: which events it takes, which it refuses, and which it asks for again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from oceanway.billing.reads_finalization import register
from oceanway.contracts.reads_billing import (
    READ_BILLING_FINALIZATION_COORDINATOR_CONSUMER_RECEIPT,
    READ_BILLING_FINALIZATION_DECISION_FOR_OPERATIONS,
    READ_RESOLUTION_APPLIED_BY_OPERATION,
    READ_RESOLUTION_APPLIED_FOR_OPERATIONS,
    CoordinatorReceiptFound,
    CoordinatorReceiptQuestion,
    DecisionForOperations,
    ResolutionByOperation,
    ResolutionForOperations,
)
from oceanway.contracts.receipts.coordinator import BillingFinalizationCoordinatorConsumerReceipt
from oceanway.reads.client import LocalReader, ReadRefused
from oceanway.reads.server import Serving
from seapost.database.pool import open_sync_pool
from seapost.model.errors import ContractError
from seapost.model.outcome import Acknowledged, ErrorCode, NonRetryable, Retryable
from tests.kit.database import TestDatabase
from tests.kit.oceanway.billing_finalization import ROLE, Billing, running_billing
from tests.kit.oceanway.billing_finalization_commands import chain_for
from tests.kit.oceanway.billing_finalization_runs import Told
from tests.kit.oceanway.reading import local_reader, new_serving

Receipt = BillingFinalizationCoordinatorConsumerReceipt


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give one billing with an open gate; every test has runs of its own."""
    with running_billing(billing_database) as bench:
        bench.open_gate()
        yield bench
        bench.balanced()


@pytest.fixture(scope="module")
def serving(billing: Billing) -> Iterator[Serving]:
    """Give billing's reads about finalizations."""
    with open_sync_pool(billing.database.dsn, part="reads", role=ROLE, size_max=2) as pool:
        made = new_serving("billing")
        register(made, pool)
        yield made


def refusal(billing: Billing, event: Told) -> str:
    """Why an event is not acknowledged; it leaves no receipt and changes nothing."""
    before = billing.digest()
    (outcome,) = billing.deliver(event)
    assert billing.digest() == before
    assert isinstance(outcome, NonRetryable | Retryable), outcome
    return f"{type(outcome).__name__} {outcome.code}"


@pytest.mark.req("FIN-01", "FIN-02", "RCP-37", "RCP-38", "RCP-42", "REF-36")
def test_the_receipt_of_a_closure_names_trigger_and_work_of_its_transaction(billing: Billing) -> None:
    """Revision, generation and both quads are those of the fence; the source is the event's payload."""
    run = billing.admitted()
    closed = run.close()
    receipt = Receipt.decode(billing.accept(closed)[0])
    fence = billing.fence(run)
    outcome = receipt.outcome
    assert outcome.state == "work_scheduled"
    assert (outcome.finalization_fence_revision, outcome.work_generation) == (2, 2)
    assert (fence["fence_revision"], fence["latest_work_generation"]) == (2, 2)
    assert outcome.billing_finalization_work_ref == fence["active_work_ref"]
    trigger = billing.one(
        "select convert_from(t.document, 'UTF8')::jsonb from billing.finalization_trigger as t where t.digest = %s",
        outcome.billing_finalization_trigger_snapshot_digest,
    )
    assert trigger["closureWatermark"] == fence["closure_watermark"]
    assert trigger["closureWatermark"]["closureEventId"] == str(closed.event_id)
    assert receipt.digest() == receipt.model_copy(update={"committed_at": "2030-01-01T00:00:00.000000Z"}).digest()
    stated = receipt.source.to_json()
    payload = json.loads(closed.envelope)["payload"]
    assert {name: stated[name] for name in payload} == payload


@pytest.mark.req("RCP-39", "RCP-40", "RCP-43", "FIN-08", "FIN-14", "TST-16")
def test_a_closure_that_comes_again_gets_its_first_receipt_in_any_state(billing: Billing) -> None:
    """Pending, in a case, finalized: the same bytes, no generation, no change of the fence."""
    run = billing.admitted()
    closed = run.close()
    billing.accept(run.measure("attempt-0", "key-0", "4"))
    first = billing.accept(closed)
    run.in_conflict()
    for step in ("again", "case", "finalized"):
        if step == "case":
            billing.work(gate=True)
        if step == "finalized":
            billing.accept(billing.resolved(run))
            run.repaired()
            billing.work(gate=True)
            assert billing.state(run) == "finalized"
        before = billing.fence(run)
        assert billing.accept(closed) == first
        assert billing.fence(run) == before


@pytest.mark.req("RCP-41", "NEG-47", "RCP-48", "FIN-08", "FIN-02")
def test_an_event_that_contradicts_what_is_known_is_rejected(billing: Billing) -> None:
    """Another digest under the same event id, a second closure event, another subject, manifest or attempt set."""
    run = billing.admitted()
    other = billing.admitted()
    closed = run.close()
    digest = "e" * 64
    falsified: tuple[dict[str, Any], ...] = (
        {"billing_account_id": "another"},
        {"tenant_id": "another"},
        {"project_id": "another"},
        {"billing_reservation_id": other.reservation},
        {"run_admission_manifest_digest": digest},
        {"attempt_set_manifest_digest": digest},
        {"attempt_count": 7},
    )
    for changes in falsified:
        assert refusal(billing, run.close(**changes)).startswith("NonRetryable"), changes
    billing.accept(closed)
    same = run.close(event_id=closed.event_id, tenant_id="another")
    assert refusal(billing, same) == f"NonRetryable {ErrorCode.DIGEST_CONFLICT}"
    assert refusal(billing, run.close()) == f"NonRetryable {ErrorCode.IDENTITY_CONFLICT}"


@pytest.mark.req("FIN-13", "NEG-46", "AMB-33", "AMB-35")
def test_an_event_that_cannot_be_decided_is_asked_for_again(billing: Billing) -> None:
    """No reservation yet, an unreadable execution, a closure it does not show, an impossible state: no receipt."""
    run = billing.admitted()
    billing.peers.unreadable = {"execution"}
    assert refusal(billing, run.close()) == f"Retryable {ErrorCode.OWNER_UNREADABLE}"
    billing.peers.unreadable = set()
    unknown = run.close(run_execution_finalization_digest="e" * 64)
    assert refusal(billing, unknown) == f"Retryable {ErrorCode.OWNER_UNREADABLE}"
    early = billing.admitted()
    billing.admin.execute("set session_replication_role = replica")
    move = "update billing.finalization_fence set billing_reservation_id = %s where billing_finalization_fence_id = %s"
    billing.admin.execute(move, ("elsewhere", early.fence))
    assert refusal(billing, early.close()) == f"Retryable {ErrorCode.FENCE_UNBINDABLE}"
    billing.admin.execute(move, (early.reservation, early.fence))
    billing.admin.execute("set session_replication_role = origin")
    billing.accept(early.close())
    billing.admin.execute(
        "update billing.finalization_fence set state = 'reconciliation_required', reconciliation_generation = 1,"
        " active_work_ref = null where billing_finalization_fence_id = %s",
        (run.fence,),
    )
    assert refusal(billing, run.close()) == f"Retryable {ErrorCode.FENCE_UNBINDABLE}"


@pytest.mark.req("FIN-07", "FIN-06", "SEC-16", "AMB-23")
def test_a_conflict_at_execution_does_not_stop_the_closure_event(billing: Billing) -> None:
    """Only the worker decides about a conflict; the consumer accepts the event and makes its work."""
    run = billing.admitted()
    run.in_conflict()
    billing.accept(run.close())
    assert billing.state(run) == "pending"


@pytest.mark.req("FIN-02", "AMB-28")
def test_many_closures_in_one_batch_are_each_applied(billing: Billing) -> None:
    """One transaction takes several events; a bad one among them does not hurt the others."""
    runs = [billing.admitted() for _ in range(4)]
    events = [run.close() for run in runs]
    events[2] = runs[2].close(attempt_count=9)
    outcomes = billing.deliver(*events)
    assert [isinstance(one, Acknowledged) for one in outcomes] == [True, True, False, True]
    assert [billing.fence(run)["latest_work_generation"] for run in runs] == [2, 2, 1, 2]


@pytest.mark.req("NEG-19", "RCP-42", "RCP-48")
def test_a_receipt_with_mixed_branches_does_not_exist(billing: Billing) -> None:
    """A closure is never superseded, and neither branch takes the other one's fields."""
    run = billing.admitted()
    document: dict[str, Any] = json.loads(billing.accept(run.close())[0])
    superseded = {"state": "already_superseded", "finalizationFenceRevision": 2}
    mixed: tuple[dict[str, Any], ...] = (
        {**document, "outcome": superseded},
        {**document, "outcome": {**document["outcome"], "state": "already_superseded"}},
        {**document, "outcome": {**superseded, "workGeneration": 2}},
        {**document, "source": {**document["source"], "reconciliationCaseRef": "x"}},
        {**document, "source": {**document["source"], "kind": "finalization_reconciliation_resolution"}},
    )
    for broken in mixed:
        with pytest.raises(ContractError):
            Receipt.decode(broken)


@pytest.mark.req("RCP-57", "RCP-58", "RCP-59", "SEC-08")
def test_a_receipt_is_read_with_its_complete_identity_only(billing: Billing, serving: Serving) -> None:
    """Found, not found, or conflicting for any other quad, event or source; no other workload may ask."""
    run = billing.admitted()
    closed = run.close()
    receipt = Receipt.decode(billing.accept(closed)[0])
    reader = local_reader(serving, workload="dispatch.execution")
    names = CoordinatorReceiptQuestion.model_fields
    question = CoordinatorReceiptQuestion(**{name: getattr(receipt, name) for name in names})
    operation = READ_BILLING_FINALIZATION_COORDINATOR_CONSUMER_RECEIPT
    prefix = "billing_finalization_coordinator_consumer_receipt"
    asked = [
        question,
        question.model_copy(update={f"{prefix}_digest": "e" * 64}),
        question.model_copy(update={f"{prefix}_ref": "another"}),
        question.model_copy(update={"event_envelope_sha256": "e" * 64}),
        question.model_copy(update={"source": question.source.model_copy(update={"attempt_count": 9})}),
        question.model_copy(update={"event_id": "01a2303f-b0f7-7346-b198-14341efe3396"}),
    ]
    answers = [one.answer for one in reader.call(operation, asked)]
    assert [one.result for one in answers] == ["found", *["conflicting"] * 4, "not_found"]
    assert isinstance(answers[0], CoordinatorReceiptFound)
    assert answers[0].receipt == receipt
    with pytest.raises(ReadRefused):
        local_reader(serving, workload="drive.core").call(operation, [question])


@pytest.mark.req("CASE-06", "SEC-13", "REF-44", "CASE-20", "CASE-22")
def test_decisions_and_resolutions_are_read_with_every_expected_identity(billing: Billing, serving: Serving) -> None:
    """Each question repeats the event or command; the two reads of a resolution have callers of their own."""
    run = billing.in_case()
    requested = billing.requested(run)
    command = chain_for(requested).command()
    operations: LocalReader = local_reader(serving, workload="serve.operations")
    decision = DecisionForOperations.decode(requested["payload"])
    absent = decision.model_copy(update={"billing_finalization_decision_ref": "another"})
    changed = [
        decision.model_copy(update={name: value})
        for name, value in (
            ("billing_finalization_decision_digest", "e" * 64),
            ("triggering_billing_finalization_work_digest", "e" * 64),
            ("triggering_billing_finalization_work_generation", 9),
            ("billing_finalization_operation_id", "another"),
            ("finalization_case_identity_reservation_digest", "e" * 64),
            ("billing_account_id", "another"),
            ("reason", "settlement_conflict"),
        )
    ]
    answers = operations.call(READ_BILLING_FINALIZATION_DECISION_FOR_OPERATIONS, [decision, absent, *changed])
    assert [one.answer.result for one in answers] == ["found", "not_found", *["conflicting"] * len(changed)]

    fact = billing.resolve(command)
    by_operation = ResolutionByOperation(**{name: getattr(fact, name) for name in ResolutionByOperation.model_fields})
    other = by_operation.model_copy(update={"grant_jti": "another"})
    nobody = by_operation.model_copy(update={"resolution_operation_id": "another"})
    gateway = local_reader(serving, workload="drive.billing")
    answers = gateway.call(READ_RESOLUTION_APPLIED_BY_OPERATION, [by_operation, other, nobody])
    assert [one.answer.result for one in answers] == ["found", "conflicting", "not_found"]

    payload = json.loads(billing.resolution_event(run).envelope)["payload"]
    announced = ResolutionForOperations.decode(payload)
    wrong = announced.model_copy(update={"actor_workforce_principal_id": "person-9"})
    answers = operations.call(READ_RESOLUTION_APPLIED_FOR_OPERATIONS, [announced, wrong])
    assert [one.answer.result for one in answers] == ["found", "conflicting"]
    for caller, operation, question in (
        (operations, READ_RESOLUTION_APPLIED_BY_OPERATION, by_operation),
        (gateway, READ_RESOLUTION_APPLIED_FOR_OPERATIONS, announced),
    ):
        with pytest.raises(ReadRefused):
            caller.call(operation, [question])  # pyright: ignore[reportArgumentType]
