"""Every contract: strict, closed, and digested over exactly what it says (section 0.2, REF-02)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oceanway.contracts import (
    reads_billing,
    reads_execution,
    reads_gateway,
    reads_metering,
    reads_operations,
)
from oceanway.contracts.identity import ALGORITHM
from oceanway.contracts.published import CONTRACTS
from oceanway.contracts.reads import ReadOperation
from oceanway.contracts.receipts import (
    catch_up,
    coordinator,
    metering,
    operations,
)
from seapost.contracts.canonical import encode
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.contract import StrictModel
from seapost.contracts.digest import sha256_hex
from seapost.model.errors import ContractError, DigestMismatch, UnknownContract
from tests.kit.oceanway.documents import valid, variants

_KERNEL = {"ActiveConsumerAck", "CanonicalEventEnvelope", "DeliverySetDefinition"}
PUBLISHED: list[type[StrictModel]] = [
    *(entry.model for entry in CONTRACTS.contracts if entry.name not in _KERNEL),
    *CONTRACTS.events,
]
ADDRESSED = [model for model in PUBLISHED if issubclass(model, ContentAddressed)]
READS: list[ReadOperation[Any, Any]] = [
    value
    for module in (reads_billing, reads_execution, reads_gateway, reads_metering, reads_operations)
    for value in vars(module).values()
    if isinstance(value, ReadOperation)
]
OWN_TIMES = {
    "AttemptExecutionManifest": "createdAt",
    "AttemptRouteBinding": "boundAt",
    "BillingFinalizationDecision": "decidedAt",
    "BillingFinalizationFact": "finalizedAt",
    "BillingFinalizationTriggerSnapshot": "createdAt",
    "BillingFinalizationWork": "createdAt",
    "BillingFinalizationWorkAttemptFinished": "finishedAt",
    "BillingSettlementCatchUpConsumerReceipt": "committedAt",
    "BillingFinalizationCoordinatorConsumerReceipt": "committedAt",
    "BillingSettlementCatchUpWork": "createdAt",
    "BillingSettlementCatchUpWorkAttemptBlocked": "blockedAt",
    "BillingSettlementCatchUpWorkAttemptFinished": "finishedAt",
    "CurrentValidationReceipt": "issuedAt",
    "EligibilityDecision": None,
    "EligibilityProcessingConflictEvidence": "observedAt",
    "ExecutionEligibilityConflictFact": "detectedAt",
    "ExecutionEligibilityFact": "finalizedAt",
    "FinalizationReconciliationApproval": "approvedAt",
    "FinalizationReconciliationCandidate": "preparedAt",
    "FinalizationReconciliationCaseIdentityReservation": "reservedAt",
    "FinalizationReconciliationDecision": "decidedAt",
    "FinalizationReconciliationGrant": "iat",
    "FinalizationReconciliationRequest": "requestedAt",
    "FinalizationReconciliationResolutionApplied": "appliedAt",
    "GatewayBindingConflictFact": "detectedAt",
    "GatewayEvidence": "observedAt",
    "GatewayEvidenceAvailabilitySnapshot": "recordedAt",
    "GatewayEvidenceConflictFact": "detectedAt",
    "GatewayRouteSnapshot": "capturedAt",
    "LateSettlementCommand": "requestedAt",
    "LateSettlementCommandResult": "committedAt",
    "LateSettlementExposure": "recordedAt",
    "LateSettlementGrant": "iat",
    "MeterEvent": None,
    "MeteringInputProcessorConsumerReceipt": "committedAt",
    "MeteringInputWork": "createdAt",
    "MeteringInputWorkAttemptBlocked": "blockedAt",
    "MeteringInputWorkAttemptFinished": "finishedAt",
    "OperationsProjectionAppliedReceipt": "appliedAt",
    "PendingFinalizationCaseSuccessor": "recordedAt",
    "ProviderCostAvailabilityProcessingFact": "processedAt",
    "ProviderCostFact": "factedAt",
    "ProviderCostProcessingConflictEvidence": "detectedAt",
    "RunAdmissionManifest": "createdAt",
    "RunAttemptSetManifest": "createdAt",
    "RunExecutionFinalizationConflictFact": "detectedAt",
    "RunExecutionFinalizationFact": "closedAt",
    "SettlementConsumption": "consumedAt",
    "SettlementInputConflictFact": "detectedAt",
    "SettlementInputSnapshot": "createdAt",
    "SettlementTransition": "committedAt",
}


def _name(model: type[StrictModel]) -> str:
    return model.__name__


@pytest.mark.req("REF-03")
@pytest.mark.parametrize("model", PUBLISHED, ids=_name)
def test_every_branch_reads_back_and_nothing_unknown_is_accepted(model: type[StrictModel]) -> None:
    """The class is strict as a whole; each branch is decoded from its bytes, an unknown or null field is refused."""
    model.ensure_strict()
    for document in variants(model):
        assert model.decode(document.canonical()) == document
    fields = valid(model).to_json()
    with pytest.raises(ContractError):
        _ = model.decode({**fields, "latest": "1"})
    with pytest.raises(ContractError):
        _ = model.decode({**fields, min(fields): None})
    for name in fields.keys() - {"projectId", "unit", "currency"}:
        with pytest.raises(ContractError):
            _ = model.decode({key: value for key, value in fields.items() if key != name})


@pytest.mark.req("RCP-02", "RCP-13", "RCP-38", "MTR-18", "CAT-14")
@pytest.mark.parametrize("model", ADDRESSED, ids=_name)
def test_a_digest_covers_everything_but_reference_own_time_and_itself(model: type[ContentAddressed]) -> None:
    """Changing any other field changes the digest; changing these three does not."""
    own_time = OWN_TIMES[model.__name__]
    prefix = model.addressing.prefix
    assert model.addressing.outside == {f"{prefix}Ref", f"{prefix}Digest"} | ({own_time} if own_time else set())
    document = valid(model)
    fields = document.to_json()
    covered = {name: value for name, value in fields.items() if name not in model.addressing.outside}
    assert document.quad().digest == sha256_hex(encode(covered))
    assert document.quad().digest_algorithm_version == ALGORITHM
    same = model.decode({**fields, f"{prefix}Ref": "another"})
    assert same.quad().digest == document.quad().digest


@pytest.mark.req("RCP-34", "RCP-41")
@pytest.mark.parametrize("model", ADDRESSED, ids=_name)
def test_a_wrong_digest_and_an_unknown_version_are_refused_as_such(model: type[ContentAddressed]) -> None:
    """Each with its own error, before anything else is judged."""
    fields = valid(model).to_json()
    prefix = model.addressing.prefix
    with pytest.raises(DigestMismatch):
        _ = model.decode({**fields, f"{prefix}Digest": "0" * 64})
    for name in ("SchemaVersion", "DigestAlgorithmVersion"):
        with pytest.raises(UnknownContract):
            _ = model.decode({**fields, f"{prefix}{name}": "2"})


@pytest.mark.req("RCP-09", "RCP-59", "SEC-08", "REF-44")
def test_reads_have_exact_purposes_and_neither_lists_nor_latest() -> None:
    """Every read names one owner, one purpose and its callers, and answers a closed union of outcomes."""
    pairs = [(read.name, read.purpose) for read in READS]
    assert len(pairs) == len(set(pairs)) == 20
    for read in READS:
        assert read.callers
        assert "latest" not in read.name.lower()
        assert "list" not in read.name.lower().replace("late", "")
        outcomes = {json.loads(answer.canonical())["answer"]["result"] for answer in variants(read.answer)}
        assert outcomes in (
            {"found", "not_found", "conflicting"},
            {"current", "superseded", "not_found", "conflicting"},
            {"reserved", "existing", "conflicting"},
        )
        for question in variants(read.arguments):
            assert read.arguments.decode(question.canonical()) == question
        for answer in variants(read.answer):
            assert read.answer.decode(answer.canonical()) == answer


@pytest.mark.req("RCP-57", "RCP-58", "RCP-04")
def test_a_receipt_read_carries_the_quad_and_the_expected_identities() -> None:
    """The complete quad of each receipt, and the event it must be for, are arguments."""
    expected: dict[str, tuple[type[ContentAddressed], set[str]]] = {
        "readOperationsProjectionAppliedReceipt": (
            operations.OperationsProjectionAppliedReceipt,
            {"destination", "consumerName", "projectionName", "projectionVersion", "deliverySetVersion", "eventType"},
        ),
        "readMeteringInputProcessorConsumerReceipt": (metering.MeteringInputProcessorConsumerReceipt, {"source"}),
        "readBillingFinalizationCoordinatorConsumerReceipt": (
            coordinator.BillingFinalizationCoordinatorConsumerReceipt,
            {"source"},
        ),
        "readBillingSettlementCatchUpConsumerReceipt": (
            catch_up.BillingSettlementCatchUpConsumerReceipt,
            {"runStepId", "executionAttemptId", "chargeDimensionKey", "settlementInputStateVersion", "tenantId"},
        ),
    }
    found = {read.name: set(valid(read.arguments).to_json()) for read in READS if "Receipt" in read.name}
    assert found.keys() == expected.keys()
    for name, (receipt, identities) in expected.items():
        prefix = receipt.addressing.prefix
        quad = {f"{prefix}{part}" for part in ("Ref", "SchemaVersion", "DigestAlgorithmVersion", "Digest")}
        common = {"eventId", "eventEnvelopeDigestAlgorithmVersion", "eventEnvelopeSha256"}
        assert found[name] >= quad | common | identities
        assert "latest" not in found[name]


@pytest.mark.req("RCP-20", "RCP-21", "MTR-27", "MTR-29", "SEC-09", "NEG-18")
def test_the_bootstrap_read_knows_the_event_and_nothing_formed_from_its_body() -> None:
    """No basis, candidate or validation operation goes in, no receipt comes out, and no general purpose exists."""
    bootstrap = reads_gateway.READ_GATEWAY_SOURCE_EVENT
    fields: Any = valid(bootstrap.arguments).to_json()
    assert {"eventId", "eventEnvelopeSha256", "aggregateRevision", "currentAvailabilityStateVersion"} <= fields.keys()
    for forbidden in ("basisDigest", "candidateDigest", "validationOperationId"):
        with pytest.raises(ContractError):
            _ = bootstrap.arguments.decode({**fields, forbidden: "x"})
    assert not any("eceipt" in answer.canonical().decode() for answer in variants(bootstrap.answer))
    purposes = {read.purpose for read in READS}
    assert "metering_fact_construction" not in purposes
    manifest = {read.purpose for read in READS if read.name == "readAttemptExecutionManifest"}
    assert manifest == {"metering_execution_eligibility", "metering_gateway_availability"}


@pytest.mark.req("SEC-13")
def test_commands_and_operations_read_a_resolution_apart() -> None:
    """Neither the purpose nor a caller of one read is one of the other's."""
    command = reads_billing.READ_RESOLUTION_APPLIED_BY_OPERATION
    projection = reads_billing.READ_RESOLUTION_APPLIED_FOR_OPERATIONS
    assert command.purpose != projection.purpose
    assert not command.callers & projection.callers
