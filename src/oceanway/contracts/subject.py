"""Who and what a fact is about: the identity fields that owners repeat to each other, always complete (CASE-28)."""

from __future__ import annotations

from typing import Literal

from oceanway.contracts.base import Contract
from seapost.contracts.envelope import Tenant
from seapost.contracts.fields import Identifier


class TenantFields(Contract):
    """Whose it is, normalized: exact case, an absent project left out (REF-12)."""

    tenant_kind: Literal["organization", "user"]
    tenant_id: Identifier
    workspace_id: Identifier
    project_id: Identifier | None = None

    def tenant(self) -> Tenant:
        """The tenant as envelopes carry it."""
        return Tenant(self.tenant_kind, self.tenant_id, self.workspace_id, self.project_id)


class AccountFields(Contract):
    """Who pays, from which reservation."""

    billing_account_id: Identifier
    billing_reservation_id: Identifier


class RunFields(TenantFields, AccountFields):
    """One run with its tenant, account and reservation."""

    run_id: Identifier


class AttemptFields(RunFields):
    """One attempt of one step of a run."""

    run_step_id: Identifier
    execution_attempt_id: Identifier


class DimensionFields(AttemptFields):
    """One charge dimension of an attempt: the full economic identity (CASE-28)."""

    charge_dimension_key: Identifier


class AttemptPlace(Contract):
    """Run, step and attempt without tenant and account."""

    run_id: Identifier
    run_step_id: Identifier
    execution_attempt_id: Identifier


class FenceFields(RunFields):
    """One run with its finalization fence."""

    billing_finalization_fence_id: Identifier
