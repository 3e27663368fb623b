"""What operations answers: identities that know no work, and receipts that only their member's dispatcher may read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from psycopg import Connection

from oceanway.contracts.errors import InvalidArgument
from oceanway.contracts.facts.cases import CaseRequestFields, FinalizationReconciliationCaseIdentityReservation
from oceanway.contracts.identity import quad_fields
from oceanway.contracts.reads_operations import (
    READ_FINALIZATION_RECONCILIATION_CASE_IDENTITY,
    READ_OPERATIONS_PROJECTION_APPLIED_RECEIPT,
    RESERVE_FINALIZATION_RECONCILIATION_CASE_IDENTITY,
    CaseIdentityQuestion,
    CaseIdentityReservationQuestion,
    ProjectionReceiptQuestion,
)
from oceanway.contracts.receipts.operations import OperationsProjectionAppliedReceipt
from oceanway.operations import identity, store_identity
from oceanway.operations.reads import register
from oceanway.reads.call import bindings_of
from oceanway.reads.errors import ReadRefused
from oceanway.reads.server import Serving
from seapost.database.pool import open_sync_pool
from seapost.model.errors import DigestMismatch
from seapost.testing.databases import TestDatabase
from tests.kit.oceanway.operations import Life
from tests.kit.oceanway.operations_cases import BillingPeer, Cases
from tests.kit.oceanway.operations_consumer import ROLE, Consumer, projecting
from tests.kit.oceanway.reading import local_reader, new_serving

IDENTITY = "finalization_case_identity_reservation"
RECEIPT = "operations_projection_applied_receipt"


@pytest.fixture(scope="module")
def projector(core_database: TestDatabase) -> Iterator[Consumer]:
    """Give the projector, running."""
    with projecting(core_database, BillingPeer()) as consumer:
        yield consumer


@pytest.fixture(scope="module")
def serving(core_database: TestDatabase, projector: Consumer) -> Iterator[Serving]:
    """Give operations' reads over its database, in the role of its process."""
    assert projector
    serving = new_serving("operations")
    with open_sync_pool(core_database.dsn, part="reads", role=ROLE, size_max=2) as pool:
        register(serving, pool)
        yield serving


@pytest.fixture
def connection(core_database: TestDatabase) -> Iterator[Connection[Any]]:
    """Give an onlooker."""
    with core_database.connect(autocommit=True) as session:
        yield session


@pytest.fixture
def cases() -> Cases:
    """Give a run of this test."""
    return Cases(Life())


def reserve(serving: Serving, candidate: FinalizationReconciliationCaseIdentityReservation) -> Any:  # noqa: ANN401 - one of three answers
    """Ask for an identity as billing's worker does."""
    reader = local_reader(serving, workload="work.finalization")
    question = CaseIdentityReservationQuestion(candidate=candidate)
    [answer] = reader.call(RESERVE_FINALIZATION_RECONCILIATION_CASE_IDENTITY, [question])
    return answer.answer


@pytest.mark.req("CASE-01", "CASE-12", "TST-24")
def test_a_repeated_reservation_returns_the_first_document(serving: Serving, cases: Cases) -> None:
    """Another time of asking makes no other identity."""
    first = reserve(serving, cases.identity(1))
    later = cases.identity(1).model_copy(update={"reserved_at": "2026-07-01T00:00:00.000000Z"})
    again = reserve(serving, later)
    assert (first.result, again.result) == ("reserved", "existing")
    assert again.reservation == first.reservation == cases.identity(1)


@pytest.mark.req("CASE-02", "CASE-03", "SEC-12", "NEG-29")
def test_an_identity_binds_subject_and_predecessor_and_nothing_of_a_work(cases: Cases) -> None:
    """Neither its digest nor the token of a call has a place for a work or a finalization operation."""
    identity_document = cases.identity(2)
    covered = set(identity_document.candidate())
    assert {"tenantId", "billingAccountId", "runId", "predecessor", "caseRequestOperationId"} <= covered
    bound = bindings_of(CaseIdentityReservationQuestion(candidate=identity_document))
    for names in (covered, set(bound)):
        assert not {name for name in names if "Work" in name or "FinalizationOperation" in name}


@pytest.mark.req("CASE-02")
@pytest.mark.parametrize("wrong", ["tenant_id", "billing_account_id"])
def test_another_subject_for_the_same_generation_conflicts(serving: Serving, cases: Cases, wrong: str) -> None:
    """Insert-or-compare: the first identity stays."""
    assert reserve(serving, cases.identity(1)).result == "reserved"
    other = Cases(cases.life)
    other.life.subject = {**cases.life.subject, wrong: "somebody-else"}
    assert reserve(serving, other.identity(1)).result == "conflicting"


@pytest.mark.req("CASE-02")
def test_a_later_generation_needs_exactly_the_identity_before_it(
    serving: Serving, cases: Cases, connection: Connection[Any]
) -> None:
    """Unknown or another predecessor: conflicting, and nothing is reserved."""
    second = cases.identity(2)
    assert reserve(serving, second).result == "conflicting"
    assert reserve(serving, cases.identity(1)).result == "reserved"
    before = second.predecessor.model_copy(update={f"{IDENTITY}_digest": "0" * 64})
    fields = {name: getattr(second, name) for name in CaseRequestFields.model_fields}
    forged = FinalizationReconciliationCaseIdentityReservation.assemble(
        **fields, **{f"{IDENTITY}_ref": "forged"}, predecessor=before, reserved_at=second.reserved_at
    )
    assert reserve(serving, forged).result == "conflicting"
    assert reserve(serving, second).result == "reserved"
    document = cases.identity(3).canonical().replace(b'"reconciliationGeneration":3', b'"reconciliationGeneration":1')
    with pytest.raises(InvalidArgument):
        _ = store_identity.reserve(connection, document=document)


@pytest.mark.req("SEC-08", "CASE-03")
def test_a_reserved_identity_is_read_by_its_complete_identity_alone(serving: Serving, cases: Cases) -> None:
    """Found with everything right, conflicting with anything else, not found before it was reserved."""
    known = cases.identity(1)
    fields = {name: getattr(known, name) for name in CaseRequestFields.model_fields}
    question = CaseIdentityQuestion(**fields, **quad_fields(IDENTITY, known.quad()))
    other = question.model_copy(update={f"{IDENTITY}_digest": "0" * 64})
    reader = local_reader(serving, workload="work.finalization")

    def results() -> list[str]:
        answers = reader.call(READ_FINALIZATION_RECONCILIATION_CASE_IDENTITY, [question, other])
        return [one.answer.result for one in answers]

    assert results() == ["not_found", "not_found"]
    _ = reserve(serving, known)
    assert results() == ["found", "conflicting"]


def receipt_question(projector: Consumer, receipt: OperationsProjectionAppliedReceipt) -> ProjectionReceiptQuestion:
    """Ask for a receipt as the dispatcher of its event does, from its own frozen member."""
    definition = projector.definition
    return ProjectionReceiptQuestion(
        **quad_fields(RECEIPT, receipt.quad()),
        event_id=receipt.event_id,
        event_type=receipt.event_type,
        event_schema_version=receipt.event_schema_version,
        event_envelope_digest_algorithm_version="jcs-sha256-v1",
        event_envelope_sha256=receipt.event_envelope_sha256,
        delivery_set_version=definition.version,
        delivery_set_definition_schema_version="1",
        delivery_set_definition_digest_algorithm_version="jcs-sha256-v1",
        delivery_set_definition_digest=definition.digest,
        destination="core_operations",
        consumer_name="operations_projector",
        projection_name="operations",
        projection_version="1",
    )


@pytest.mark.req("RCP-04", "RCP-05", "RCP-07", "RCP-08", "RCP-11", "DLV-09", "SEC-07", "SEC-08", "NEG-11")
def test_a_receipt_is_found_for_its_member_and_conflicts_in_every_other_item(
    projector: Consumer, serving: Serving
) -> None:
    """What it must prove says the frozen member, not the question: another projection or definition conflicts."""
    receipt = OperationsProjectionAppliedReceipt.decode(projector.accept(Life().run_created())[0])
    question = receipt_question(projector, receipt)
    reader = local_reader(serving, workload="dispatch.core")
    [answer] = reader.call(READ_OPERATIONS_PROJECTION_APPLIED_RECEIPT, [question])
    assert answer.answer.result == "found"
    assert answer.answer.receipt == receipt
    for change in (
        {"projection_version": "2"},
        {"projection_name": "other"},
        {"delivery_set_definition_digest": "0" * 64},
        {"delivery_set_version": "999"},
        {"event_envelope_sha256": "0" * 64},
        {f"{RECEIPT}_digest": "0" * 64},
        {f"{RECEIPT}_ref": "another"},
        {"event_type": "wallet.reserved@2.0"},
    ):
        changed = question.model_copy(update=change)
        [answer] = reader.call(READ_OPERATIONS_PROJECTION_APPLIED_RECEIPT, [changed])
        assert answer.answer.result == "conflicting", change
    unknown = question.model_copy(update={"event_id": str(Life().run_event_id)})
    [answer] = reader.call(READ_OPERATIONS_PROJECTION_APPLIED_RECEIPT, [unknown])
    assert answer.answer.result == "not_found"


@pytest.mark.req("RCP-06", "SEC-07", "NEG-11")
@pytest.mark.parametrize("workload", ["dispatch.billing", "dispatch.metering", "serve.operations", "work.finalization"])
def test_only_the_dispatcher_of_the_producer_may_read_a_receipt(
    projector: Consumer, serving: Serving, workload: str
) -> None:
    """A core event's receipt is for the dispatcher of the core, also where another one may read others."""
    receipt = OperationsProjectionAppliedReceipt.decode(projector.accept(Life().run_created())[0])
    reader = local_reader(serving, workload=workload)
    with pytest.raises(ReadRefused):
        _ = reader.call(READ_OPERATIONS_PROJECTION_APPLIED_RECEIPT, [receipt_question(projector, receipt)])


@pytest.mark.req("RCP-09", "SEC-08", "NEG-11")
def test_there_is_no_list_no_latest_and_no_administrative_read(serving: Serving) -> None:
    """Three operations, and each asks for one complete identity."""
    assert sorted(operation.name for operation in serving.operations) == [
        "readFinalizationReconciliationCaseIdentity",
        "readOperationsProjectionAppliedReceipt",
        "reserveFinalizationReconciliationCaseIdentity",
    ]
    for operation in serving.operations:
        assert not {name for name in operation.arguments.model_fields if "limit" in name or "latest" in name}


def test_an_identity_with_a_wrong_digest_is_refused(connection: Connection[Any], cases: Cases) -> None:
    """The candidate is verified before anything is stored."""
    wrong = cases.identity(1).model_copy(update={f"{IDENTITY}_digest": "0" * 64})
    with pytest.raises(DigestMismatch):
        _ = identity.reserve(connection, wrong)
