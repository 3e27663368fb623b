"""From an owner's payload to the envelope that is appended: tenant and aggregate follow from the payload (annex B)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from oceanway.contracts.events import (
    AttemptEligibilityFinalized,
    BillingFinalizationCommitted,
    CaseResolutionApplied,
    FinalizationReconciliationCaseRequested,
    FinalizationReconciliationResolutionAppliedEvent,
    GatewayEvidenceAvailabilityCurrentChanged,
    LateSettlementCaseRequested,
    LateSettlementCommandResultCommitted,
    OwnerEvent,
    RunCreated,
    RunFinalizationClosed,
    SettlementInputCurrentChanged,
    SettlementTransitionCommitted,
    WalletReserved,
)
from oceanway.contracts.facts.gateway import EvidenceChain
from oceanway.contracts.identity import det
from oceanway.contracts.subject import TenantFields
from seapost.contracts.envelope import Correlation, PreparedEvent, Tenant, build_envelope
from seapost.model.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import Any
    from uuid import UUID


def availability_chain_id(chain: EvidenceChain) -> str:
    """The aggregate of a gateway availability chain."""
    return det(
        "availability_chain",
        chain.execution_attempt_id,
        chain.gateway_deployment_id,
        chain.provider_evidence_kind,
        chain.evidence_dimension_key,
    )


def finalization_case_aggregate(kind: str, fence_id: str, generation: int) -> str:
    """The aggregate of a finalization case's request or resolution; `kind` keeps the two apart (AMB-29)."""
    return det(kind, fence_id, generation)


def _case_request(event: FinalizationReconciliationCaseRequested) -> tuple[str, int]:
    fence, generation = event.billing_finalization_fence_id, event.reconciliation_generation
    return finalization_case_aggregate("finalization_case_request", fence, generation), 1


def _case_resolution(event: FinalizationReconciliationResolutionAppliedEvent) -> tuple[str, int]:
    fence, generation = event.billing_finalization_fence_id, event.reconciliation_generation
    return finalization_case_aggregate("finalization_case_resolution", fence, generation), event.resolution_revision


_AGGREGATES: Final[dict[type[OwnerEvent], Callable[[Any], tuple[str, int]]]] = {
    RunCreated: lambda event: (event.run_id, 1),
    WalletReserved: lambda event: (event.billing_reservation_id, event.reservation_state_version),
    AttemptEligibilityFinalized: lambda event: (event.execution_attempt_id, 1),
    RunFinalizationClosed: lambda event: (event.run_id, event.run_execution_finalization_state_version),
    GatewayEvidenceAvailabilityCurrentChanged: lambda event: (
        availability_chain_id(event),
        event.current_availability_state_version,
    ),
    SettlementInputCurrentChanged: lambda event: (event.dimension_id, event.settlement_input_state_version),
    BillingFinalizationCommitted: lambda event: (event.billing_finalization_fence_id, 1),
    SettlementTransitionCommitted: lambda event: (event.dimension_id, event.to_revision),
    LateSettlementCommandResultCommitted: lambda event: (event.dimension_id, event.to_revision),
    LateSettlementCaseRequested: lambda event: (event.case_ref, 1),
    CaseResolutionApplied: lambda event: (event.case_ref, 1),
    FinalizationReconciliationCaseRequested: _case_request,
    FinalizationReconciliationResolutionAppliedEvent: _case_resolution,
}


def aggregate_of(event: OwnerEvent) -> tuple[str, int]:
    """Identifier and revision of the aggregate that an event is about (AMB-29)."""
    return _AGGREGATES[type(event)](event)


def envelope_of(
    event: OwnerEvent,
    *,
    correlation_id: str,
    event_id: UUID | None = None,
    causation_id: str | None = None,
    operation_id: str | None = None,
    occurred_at: datetime | None = None,
    tenant: Tenant | None = None,
) -> PreparedEvent:
    """Write the envelope of an owner's event.

    Args:
        event: the payload.
        correlation_id: the run.
        event_id: a UUIDv7; absent, a fresh one.
        causation_id: the event that caused this one, if any.
        operation_id: the operation behind it, if any.
        occurred_at: an aware moment; absent, now.
        tenant: only for a payload without one, such as the gateway's.

    Raises:
        ContractError: the tenant is missing or given twice, or an identifier breaks its rule.
    """
    if isinstance(event, TenantFields):
        if tenant is not None and tenant != event.tenant():
            raise ContractError("The payload says another tenant", pointer="/tenant", rule="tenant")
        tenant = event.tenant()
    if tenant is None:
        raise ContractError("This payload has no tenant; pass one", pointer="/tenant", rule="missing_field")
    key, revision = aggregate_of(event)
    return build_envelope(
        event,
        key=key,
        revision=revision,
        tenant=tenant,
        correlation=Correlation(correlation_id, causation_id, operation_id),
        occurred_at=occurred_at,
        event_id=event_id,
    )
