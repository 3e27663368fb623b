"""Runs to admit: each call makes one that no other test knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from oceanway.contracts.subject import RunFields
from oceanway.core.transactions import RunAdmission, admission_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oceanway.contracts.facts.admission import RunAdmissionManifest

NOW: Final = "2026-03-01T08:00:00.000000Z"
LATER: Final = "2026-03-01T09:30:00.000000Z"
STEPS: Final[Mapping[str, Sequence[str]]] = {"step-1": ["tokens"], "step-2": ["seconds", "tokens"]}


def new_subject(**changes: Any) -> RunFields:
    """Make tenant, account, reservation and run of a new run."""
    key = uuid4().hex
    fields: dict[str, Any] = {
        "tenant_kind": "organization",
        "tenant_id": "tenant-1",
        "workspace_id": "workspace-1",
        "billing_account_id": "account-1",
        "billing_reservation_id": f"reservation-{key}",
        "run_id": f"run-{key}",
    }
    return RunFields(**{**fields, **changes})


def new_manifest(steps: Mapping[str, Sequence[str]] = STEPS, **changes: Any) -> RunAdmissionManifest:
    """Make the admission manifest of a new run."""
    return admission_manifest(new_subject(**changes), steps=steps, created_at=NOW)


def new_admission(amount: str = "120.5", currency: str = "EUR", **changes: Any) -> RunAdmission:
    """Make a new run to admit."""
    return RunAdmission(new_manifest(**changes), amount, currency)
