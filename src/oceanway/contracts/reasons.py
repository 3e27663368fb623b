"""The reason codes of each contract: closed, low in sensitivity, one enumeration for each meaning (REF-34)."""

from __future__ import annotations

from typing import Literal

FailureReason = Literal["provider_failed", "timed_out", "cancelled", "rejected", "internal_error"]
"""Why an attempt failed after it was bound to a gateway."""

NotDispatchedReason = Literal["cancelled_before_dispatch", "no_route", "rejected_by_policy", "run_closed"]
"""Why an attempt never reached a gateway."""

AvailabilityReason = Literal[
    "provider_record_missing",
    "provider_record_rejected",
    "provider_records_differ",
    "provider_unreachable",
    "retention_expired",
]
"""Why evidence is unavailable or conflicting."""

NotBillableReason = Literal["usage_not_reported", "usage_unavailable", "not_dispatched", "attempt_failed"]
"""Why an attempt is not charged (AMB-49)."""

ConflictKind = Literal["identity", "content", "digest", "binding", "state_version", "evidence"]
"""In what two claims about one thing differ (REF-21)."""

ConflictReason = Literal[
    "other_candidate_for_identity",
    "digest_differs",
    "manifest_differs",
    "binding_differs",
    "set_differs",
    "state_version_differs",
    "evidence_differs",
    "reported_by_owner",
]
"""What an owner found when it refused the second claim."""

ProcessingConflictReason = Literal[
    "schema_unknown",
    "identity_differs",
    "digest_differs",
    "manifest_differs",
    "mapping_missing",
    "mapping_ambiguous",
    "unit_differs",
    "currency_differs",
    "quantity_out_of_range",
    "amount_out_of_range",
    "receipt_differs",
    "evidence_missing",
    "other_candidate_for_identity",
]
"""Why metering could not derive its own fact from what the owners say (MTR-16, MTR-17)."""

FinalizationReason = Literal["execution_conflict", "settlement_conflict"]
"""Why a finalization needs reconciliation (REF-37)."""
