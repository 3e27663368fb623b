"""Billing's two receipts and the operations receipt: their branches, and the comparison with the event."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.events import (
    AttemptEligibilityFinalized,
    FinalizationReconciliationResolutionAppliedEvent,
    GatewayEvidenceAvailabilityCurrentChanged,
    RunFinalizationClosed,
    SettlementInputCurrentChanged,
)
from oceanway.contracts.events.base import OwnerEvent
from oceanway.contracts.facts.settlement import SettlementEconomicIdentity
from oceanway.contracts.quints import SettlementInputQuint
from oceanway.contracts.receipts import catch_up, coordinator
from oceanway.contracts.receipts.metering import (
    MeteringInputProcessorConsumerReceipt,
    SourceExecutionEligibility,
    SourceGatewayAvailability,
)
from oceanway.contracts.receipts.operations import OperationsProjectionAppliedReceipt
from oceanway.contracts.receipts.registry import RECEIPTS
from oceanway.contracts.subject import TenantFields
from seapost.contracts.envelope import Envelope, Tenant, read_envelope
from seapost.model.errors import ContractError
from tests.kit.oceanway.documents import EVENT_ID, valid
from tests.kit.oceanway.lanes import cost_lane, eligibility_lane

CoordinatorReceipt = coordinator.BillingFinalizationCoordinatorConsumerReceipt
CatchUpReceipt = catch_up.BillingSettlementCatchUpConsumerReceipt
CLOSURE = coordinator.SourceExecutionClosure
RESOLUTION = coordinator.SourceFinalizationReconciliationResolution


def enveloped(payload: OwnerEvent) -> Envelope:
    """Put a payload into its envelope and read that back."""
    tenant = None if isinstance(payload, TenantFields) else Tenant("organization", "tenant_id-1", "workspace_id-1")
    made = envelope_of(payload, correlation_id="run_id-1", event_id=UUID(EVENT_ID), tenant=tenant)
    return read_envelope(made.envelope)


@pytest.mark.req("RCP-01")
def test_the_operations_receipt_has_one_destination_and_names_its_projection() -> None:
    """Destination and consumer are constants; projection and event are stated in full."""
    fields = valid(OperationsProjectionAppliedReceipt).to_json()
    assert (fields["destination"], fields["consumerName"]) == ("core_operations", "operations_projector")
    for name, value in (("destination", "core"), ("consumerName", "projector"), ("projectionName", None)):
        with pytest.raises(ContractError):
            _ = OperationsProjectionAppliedReceipt.decode({**fields, name: value})


@pytest.mark.req("RCP-37", "RCP-42", "RCP-44", "RCP-45", "RCP-48", "NEG-19")
def test_a_closure_always_schedules_work_and_a_resolution_may_be_superseded() -> None:
    """All pairs of source and outcome but one can be built; the sources cannot be mixed."""
    scheduled = valid(coordinator.OutcomeWorkScheduled)
    superseded = valid(coordinator.OutcomeAlreadySuperseded)
    for source, outcome in ((CLOSURE, scheduled), (RESOLUTION, scheduled), (RESOLUTION, superseded)):
        assert valid(CoordinatorReceipt, source=valid(source), outcome=outcome).outcome == outcome
    with pytest.raises(ContractError, match="never superseded"):
        _ = valid(CoordinatorReceipt, source=valid(CLOSURE), outcome=superseded)
    mixed: dict[str, Any] = valid(CLOSURE).to_json() | {"reconciliationGeneration": 1}
    with pytest.raises(ContractError):
        _ = CLOSURE.decode(mixed)
    partial: dict[str, Any] = superseded.to_json() | {"workGeneration": 1}
    with pytest.raises(ContractError):
        _ = coordinator.OutcomeAlreadySuperseded.decode(partial)


@pytest.mark.req("RCP-44", "RCP-48", "CASE-16")
@pytest.mark.parametrize(
    "name",
    ["closure_operation_id", "resolution_operation_id", "reconciliation_case_ref", "billing_finalization_fence_id"],
)
def test_a_coordinator_source_has_its_deterministic_identities(name: str) -> None:
    """An operation, case or fence that does not follow from the rest is refused."""
    source = CLOSURE if name == "closure_operation_id" else RESOLUTION
    with pytest.raises(ContractError, match="does not follow"):
        _ = valid(source, **{name: "another"})


@pytest.mark.req("RCP-49", "RCP-50", "RCP-51", "RCP-52", "RCP-53", "RCP-54", "NEG-25")
@pytest.mark.parametrize(
    "durability",
    [
        catch_up.DurabilityFinalizationWorkScheduled,
        catch_up.DurabilitySettlementCatchUpScheduled,
        catch_up.DurabilityHeldForResolution,
    ],
)
def test_a_durability_has_the_fields_of_its_own_branch_only(durability: Any) -> None:  # noqa: ANN401 - one of the classes
    """Held: no trigger, work, generation or operation; finalization: no catch-up fields, and the other way round."""
    made = valid(durability)
    outcome = valid(catch_up.OutcomeWatermarkAdvanced, durability=made)
    assert valid(CatchUpReceipt, outcome=outcome).outcome == outcome
    others = {
        "workGeneration": 1,
        "billingFinalizationTriggerSnapshotRef": "trigger",
        "billingFinalizationWorkRef": "work",
        "billingSettlementCatchUpWorkRef": "work",
        "billingCatchUpValidationOperationId": "operation",
        "settlementCatchUpFenceRevision": 1,
        "finalizationFenceRevision": 1,
        "reconciliationCaseRef": "case",
    }
    for name, value in others.items():
        if name not in made.to_json():
            with pytest.raises(ContractError):
                _ = durability.decode({**made.to_json(), name: value})


@pytest.mark.req("RCP-55", "AMB-07", "NEG-25")
def test_only_a_strictly_older_input_was_observed_already() -> None:
    """The watermark is above the event's revision; equal and lower ones are refused."""

    def observed(highest: int) -> object:
        quint = valid(SettlementInputQuint, settlement_input_state_version=highest)
        outcome = valid(catch_up.OutcomeAlreadyObserved, highest_observed_settlement_input=quint)
        stated = valid(SettlementInputQuint, settlement_input_state_version=2)
        return valid(CatchUpReceipt, outcome=outcome, event_settlement_input=stated)

    assert observed(3)
    for highest in (1, 2):
        with pytest.raises(ContractError, match="Only an older input"):
            _ = observed(highest)


def _pairs() -> list[tuple[OwnerEvent, Any, str]]:
    """Every receipt with a business identity, its event, and where the receipt states it."""
    cost = valid(GatewayEvidenceAvailabilityCurrentChanged, provider_evidence_kind="provider_cost")
    return [
        (
            valid(AttemptEligibilityFinalized),
            valid(
                MeteringInputProcessorConsumerReceipt,
                source=valid(SourceExecutionEligibility),
                lane=eligibility_lane(),
            ),
            "source",
        ),
        (
            cost,
            valid(
                MeteringInputProcessorConsumerReceipt,
                source=valid(SourceGatewayAvailability, provider_evidence_kind="provider_cost"),
                lane=cost_lane(),
            ),
            "source",
        ),
        (valid(RunFinalizationClosed), valid(CoordinatorReceipt, source=valid(CLOSURE)), "source"),
        (
            valid(FinalizationReconciliationResolutionAppliedEvent),
            valid(CoordinatorReceipt, source=valid(RESOLUTION)),
            "source",
        ),
        (valid(SettlementInputCurrentChanged), valid(CatchUpReceipt), ""),
    ]


def _another(value: Any) -> Any:  # noqa: ANN401 - the value of any field
    if isinstance(value, SettlementEconomicIdentity):
        return value.model_copy(update={"currency": "USD"})
    return value + 1 if isinstance(value, int) else f"{value}x"


@pytest.mark.req("DLV-19", "RCP-15", "RCP-42", "RCP-44", "RCP-48", "RCP-31")
@pytest.mark.parametrize(("event", "receipt", "where"), _pairs(), ids=lambda one: type(one).__name__)
def test_a_receipt_is_believed_only_with_the_events_own_identity(
    event: OwnerEvent,
    receipt: Any,  # noqa: ANN401 - any receipt with a business identity
    where: str,
) -> None:
    """Each stated field is compared with the payload: with any one of them changed, the comparison fails."""
    kind = RECEIPTS.of(receipt)
    assert kind.compare is not None
    kind.compare(receipt, enveloped(event))
    holder: Any = receipt.source if where else receipt
    fields: dict[str, Any] = dict(holder)
    names = fields.keys() & dict(event).keys()
    assert len(names) > 10
    for name in names:
        changed = holder.model_copy(update={name: _another(fields[name])})
        wrong = receipt.model_copy(update={"source": changed}) if where else changed
        with pytest.raises(ContractError):
            kind.compare(wrong, enveloped(event))


@pytest.mark.req("DLV-19", "RCP-54")
def test_the_settlement_input_of_a_catch_up_receipt_is_the_events() -> None:
    """Another quint in the receipt is refused."""
    compare = RECEIPTS.get("BillingSettlementCatchUpConsumerReceipt", "1").compare
    assert compare is not None
    event = enveloped(valid(SettlementInputCurrentChanged))
    for name, value in (("settlement_input_snapshot_digest", "0" * 64), ("settlement_input_state_version", 2)):
        wrong = valid(CatchUpReceipt, event_settlement_input=valid(SettlementInputQuint, **{name: value}))
        with pytest.raises(ContractError):
            compare(wrong, event)


@pytest.mark.req("DLV-02", "DLV-06", "GEN-12", "SET-10")
def test_exactly_four_receipt_types_are_registered_and_the_registry_is_closed() -> None:
    """Their kinds are those of the acknowledgement's union; only operations proves a projection."""
    assert {(entry.name, entry.ack_kind) for entry in RECEIPTS} == {
        ("OperationsProjectionAppliedReceipt", "operations_projection"),
        ("MeteringInputProcessorConsumerReceipt", "metering_input_processor"),
        ("BillingFinalizationCoordinatorConsumerReceipt", "billing_finalization_coordinator"),
        ("BillingSettlementCatchUpConsumerReceipt", "billing_settlement_catch_up"),
    }
    assert [entry.name for entry in RECEIPTS if entry.is_projection] == ["OperationsProjectionAppliedReceipt"]
    with pytest.raises(ContractError, match="closed"):
        _ = RECEIPTS.register(OperationsProjectionAppliedReceipt, ack_kind="another")
