"""The payloads of the thirteen event types."""

from __future__ import annotations

from typing import Final

from oceanway.contracts.events.base import OwnerEvent
from oceanway.contracts.events.billing import (
    BillingFinalizationCommitted,
    FinalizationReconciliationCaseRequested,
    FinalizationReconciliationResolutionAppliedEvent,
)
from oceanway.contracts.events.core import RunCreated, WalletReserved
from oceanway.contracts.events.execution import AttemptEligibilityFinalized, RunFinalizationClosed
from oceanway.contracts.events.gateway import GatewayEvidenceAvailabilityCurrentChanged
from oceanway.contracts.events.metering import SettlementInputCurrentChanged
from oceanway.contracts.events.settlement import (
    CaseResolutionApplied,
    LateSettlementCaseRequested,
    LateSettlementCommandResultCommitted,
    SettlementTransitionCommitted,
)

EVENTS: Final[tuple[type[OwnerEvent], ...]] = (
    RunCreated,
    WalletReserved,
    BillingFinalizationCommitted,
    SettlementTransitionCommitted,
    LateSettlementCaseRequested,
    CaseResolutionApplied,
    LateSettlementCommandResultCommitted,
    AttemptEligibilityFinalized,
    RunFinalizationClosed,
    FinalizationReconciliationCaseRequested,
    FinalizationReconciliationResolutionAppliedEvent,
    GatewayEvidenceAvailabilityCurrentChanged,
    SettlementInputCurrentChanged,
)
"""All of them, in the order of SET-21."""

__all__ = [
    "EVENTS",
    "AttemptEligibilityFinalized",
    "BillingFinalizationCommitted",
    "CaseResolutionApplied",
    "FinalizationReconciliationCaseRequested",
    "FinalizationReconciliationResolutionAppliedEvent",
    "GatewayEvidenceAvailabilityCurrentChanged",
    "LateSettlementCaseRequested",
    "LateSettlementCommandResultCommitted",
    "OwnerEvent",
    "RunCreated",
    "RunFinalizationClosed",
    "SettlementInputCurrentChanged",
    "SettlementTransitionCommitted",
    "WalletReserved",
]
