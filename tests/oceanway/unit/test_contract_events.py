"""The thirteen payloads and their envelopes (annex B, CASE-28)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from oceanway.contracts import events
from oceanway.contracts.envelopes import aggregate_of, availability_chain_id, envelope_of
from oceanway.contracts.events import EVENTS
from oceanway.contracts.events.base import OwnerEvent
from oceanway.contracts.facts.settlement import SettlementEconomicIdentity, settlement_dimension_id
from oceanway.contracts.identity import det
from oceanway.contracts.release import application
from oceanway.contracts.subject import TenantFields
from seapost.contracts.envelope import Tenant, read_envelope
from seapost.model.errors import ContractError, UnknownContract
from tests.kit.oceanway.documents import EVENT_ID, valid

TENANT = Tenant("organization", "tenant_id-1", "workspace_id-1", "project_id-1")
DIMENSION = settlement_dimension_id(
    "billing_reservation_id-1", "run_step_id-1", "execution_attempt_id-1", "charge_dimension_key-1"
)
FENCE = det("finalization_fence", "billing_reservation_id-1", "run_id-1")
AGGREGATES: dict[type[OwnerEvent], tuple[str, str, int]] = {
    events.RunCreated: ("run", "run_id-1", 1),
    events.WalletReserved: ("reservation", "billing_reservation_id-1", 1),
    events.BillingFinalizationCommitted: ("finalization", FENCE, 1),
    events.SettlementTransitionCommitted: ("settlement_dimension", DIMENSION, 2),
    events.LateSettlementCaseRequested: ("late_case_request", det("late_settlement_case", DIMENSION, 2), 1),
    events.CaseResolutionApplied: ("late_case_resolution", det("late_settlement_case", DIMENSION, 2), 1),
    events.LateSettlementCommandResultCommitted: ("settlement_dimension", DIMENSION, 2),
    events.AttemptEligibilityFinalized: ("attempt", "execution_attempt_id-1", 1),
    events.RunFinalizationClosed: ("run_closure", "run_id-1", 1),
    events.FinalizationReconciliationCaseRequested: (
        "finalization_case_request",
        det("finalization_case_request", FENCE, 1),
        1,
    ),
    events.FinalizationReconciliationResolutionAppliedEvent: (
        "finalization_case_resolution",
        det("finalization_case_resolution", FENCE, 1),
        1,
    ),
    events.GatewayEvidenceAvailabilityCurrentChanged: (
        "availability_chain",
        det(
            "availability_chain",
            "execution_attempt_id-1",
            "gateway_deployment_id-1",
            "provider_usage",
            "evidence_dimension_key-1",
        ),
        1,
    ),
    events.SettlementInputCurrentChanged: ("settlement_dimension_input", DIMENSION, 1),
}
WITH_A_STEP = [
    events.AttemptEligibilityFinalized,
    events.SettlementInputCurrentChanged,
    events.SettlementTransitionCommitted,
    events.LateSettlementCaseRequested,
    events.CaseResolutionApplied,
    events.LateSettlementCommandResultCommitted,
]


def _name(event: type[OwnerEvent]) -> str:
    return event.__name__


def _envelope(payload: OwnerEvent) -> bytes:
    tenant = None if isinstance(payload, TenantFields) else TENANT
    return envelope_of(payload, correlation_id="run_id-1", event_id=UUID(EVENT_ID), tenant=tenant).envelope


@pytest.mark.req("AMB-29", "APP-20", "APP-25", "CASE-17", "REF-01")
@pytest.mark.parametrize("event", EVENTS, ids=_name)
def test_an_envelope_names_tenant_and_aggregate_of_its_payload(event: type[OwnerEvent]) -> None:
    """Kind, identifier and revision are those of annex B; the payload reads back by its exact pair."""
    payload = valid(event)
    envelope = read_envelope(_envelope(payload))
    assert (envelope.aggregate.kind, envelope.aggregate.id, envelope.aggregate.revision) == AGGREGATES[event]
    assert aggregate_of(payload) == AGGREGATES[event][1:]
    assert envelope.tenant == TENANT
    assert envelope.producer == event.event_producer
    assert application().events.decode(envelope.event_type, envelope.event_schema_version, envelope.payload) == payload


@pytest.mark.req("AMB-29", "CASE-17")
def test_requests_and_resolutions_of_one_case_are_different_aggregates() -> None:
    """Otherwise an early resolution would be a gap of its own request (CASE-14, CASE-26)."""
    kinds = [kind for kind, _, _ in AGGREGATES.values()]
    assert len({kind for kind in kinds if "case" in kind}) == 4
    assert kinds.count("settlement_dimension") == 2


@pytest.mark.req("AMB-41")
@pytest.mark.parametrize("event", EVENTS, ids=_name)
def test_an_event_names_the_fact_it_announces(event: type[OwnerEvent]) -> None:
    """The key is one of the payload's own references."""
    payload = valid(event)
    assert payload.source_fact_key() in {value for value in payload.to_json().values() if isinstance(value, str)}


@pytest.mark.req("REF-12")
def test_a_tenant_is_given_exactly_where_the_payload_has_none() -> None:
    """A gateway payload needs one, any other must not be contradicted."""
    with pytest.raises(ContractError, match="has no tenant"):
        _ = envelope_of(valid(events.GatewayEvidenceAvailabilityCurrentChanged), correlation_id="run_id-1")
    with pytest.raises(ContractError, match="another tenant"):
        _ = envelope_of(
            valid(events.WalletReserved), correlation_id="run_id-1", tenant=Tenant("user", "someone", "somewhere")
        )


@pytest.mark.req("TST-03", "SET-22", "SET-39", "NEG-40")
@pytest.mark.parametrize("event", EVENTS, ids=_name)
def test_an_alias_of_an_event_is_unknown(event: type[OwnerEvent]) -> None:
    """A prefix, a type without its version, another version, and latest are all refused by the registry."""
    known = application().events
    bare = event.event_type.partition("@")[0]
    payload = valid(event).to_json()
    for alias in (bare, f"{bare}@latest", f"{bare}@3", f"{bare}.", f"oceanway.{event.event_type}"):
        with pytest.raises(UnknownContract):
            _ = known.decode(alias, event.event_schema_version, payload)
    with pytest.raises(UnknownContract):
        _ = known.decode(event.event_type, "3", payload)


@pytest.mark.req("TST-04", "NEG-33", "CASE-28")
@pytest.mark.parametrize("event", WITH_A_STEP, ids=_name)
def test_a_payload_without_its_step_is_refused(event: type[OwnerEvent]) -> None:
    """Step, attempt, run, reservation and account are stated, never looked up."""
    fields = valid(event).to_json()
    for name in ("runStepId", "executionAttemptId", "runId", "billingReservationId", "billingAccountId"):
        with pytest.raises(ContractError) as refused:
            _ = event.decode({key: value for key, value in fields.items() if key != name})
        assert (refused.value.rule, refused.value.pointer) == ("missing_field", f"/{name}")


@pytest.mark.req("TST-04", "CASE-28", "APP-25", "CAT-01")
@pytest.mark.parametrize(
    "event", [one for one in WITH_A_STEP if one is not events.AttemptEligibilityFinalized], ids=_name
)
def test_a_payload_with_another_step_is_not_about_its_dimension(event: type[OwnerEvent]) -> None:
    """The settlement dimension follows from reservation, step, attempt and key: crossing any of them is refused."""
    fields = valid(event).to_json()
    for name in ("runStepId", "executionAttemptId", "billingReservationId", "chargeDimensionKey"):
        with pytest.raises(ContractError):
            _ = event.decode({**fields, name: "another"})


@pytest.mark.req("APP-20")
def test_a_closure_is_self_contained() -> None:
    """Subject, admission manifest, closure with its state version, attempt set with its count."""
    fields = valid(events.RunFinalizationClosed).to_json()
    quads = ("runAdmissionManifest", "runExecutionFinalization", "attemptSetManifest")
    parts = ("Ref", "SchemaVersion", "DigestAlgorithmVersion", "Digest")
    expected = {f"{quad}{part}" for quad in quads for part in parts}
    assert expected | {"runExecutionFinalizationStateVersion", "attemptCount", "closureOperationId"} <= fields.keys()
    for name, value in (("runExecutionFinalizationStateVersion", 2), ("closureOperationId", "another")):
        with pytest.raises(ContractError):
            _ = events.RunFinalizationClosed.decode({**fields, name: value})


@pytest.mark.req("APP-25", "AMB-36", "CAT-01")
@pytest.mark.parametrize(("version", "before"), [(1, 1), (2, None), (3, 1), (2, 2)])
def test_the_predecessor_is_exactly_one_version_lower(version: int, before: int | None) -> None:
    """Version 1 has none; any later one has the complete quint of the one before."""
    fields: dict[str, Any] = valid(events.SettlementInputCurrentChanged).to_json()
    predecessor: dict[str, Any] = {"state": "none"}
    if before is not None:
        quint = {name: fields[name] for name in fields if name.startswith("settlementInput")}
        predecessor = {"state": "present", **quint, "settlementInputStateVersion": before}
    changed = {**fields, "settlementInputStateVersion": version, "predecessor": predecessor}
    with pytest.raises(ContractError, match="one version lower"):
        _ = events.SettlementInputCurrentChanged.decode(changed)


@pytest.mark.req("REF-22")
def test_the_four_parts_tell_availability_chains_apart() -> None:
    """Attempt, deployment, kind and dimension each make another aggregate."""
    base = valid(events.GatewayEvidenceAvailabilityCurrentChanged)
    changes = {
        "execution_attempt_id": "x",
        "gateway_deployment_id": "x",
        "provider_evidence_kind": "provider_cost",
        "evidence_dimension_key": "x",
    }
    chains = {availability_chain_id(base.model_copy(update={name: value})) for name, value in changes.items()}
    assert len(chains | {availability_chain_id(base)}) == 5


@pytest.mark.req("FIN-01", "MTR-01", "SET-39")
@pytest.mark.parametrize("event", EVENTS, ids=_name)
def test_no_payload_is_read_as_another(event: type[OwnerEvent]) -> None:
    """The consumers of two events tell them apart: no class reads the payload of another one."""
    fields = valid(event).to_json()
    for other in EVENTS:
        if other is not event:
            with pytest.raises(ContractError):
                _ = other.decode(fields)


@pytest.mark.req("REF-33", "CASE-28")
def test_an_economic_identity_is_bound_to_its_meaning_by_digest() -> None:
    """Unit, currency, price book, dimension and key are all covered; the identity of another key is refused."""
    identity = valid(SettlementEconomicIdentity)
    fields = identity.to_json()
    for name in ("settlementDimensionId", "chargeDimensionKey", "quantityUnit", "priceBookRef", "priceBookVersion"):
        with pytest.raises(ContractError) as refused:
            _ = SettlementEconomicIdentity.decode({**fields, name: "another"})
        assert refused.value.rule == "digest"
    with pytest.raises(ContractError):
        _ = SettlementEconomicIdentity.decode({**fields, "currency": "USD"})
    parts = dict(identity) | {"charge_dimension_key": "another"}
    names = ("settlement_dimension_id", "quantity_unit", "currency", "price_book_ref", "price_book_version")
    other = SettlementEconomicIdentity.of(charge_dimension_key="another", **{name: parts[name] for name in names})
    with pytest.raises(ContractError) as refused:
        _ = valid(events.SettlementInputCurrentChanged, settlement_economic_identity=other)
    assert refused.value.rule == "dimension"
