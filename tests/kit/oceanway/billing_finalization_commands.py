"""Command chains that resolve a case, as operations would make them: request, candidate, decision and signed grant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from time import time
from typing import Any, Final
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oceanway.billing.grants import sign_grant
from oceanway.billing.resolution.command import ResolutionCommand
from oceanway.contracts.facts.resolution import (
    FinalizationReconciliationCandidate,
    FinalizationReconciliationDecision,
    FinalizationReconciliationGrant,
    FinalizationReconciliationRequest,
    InvestigationEvidenceReference,
    references_digest,
    resolution_operation_id,
)
from oceanway.contracts.identity import quad_fields
from seapost.contracts.content_addressed import Quad
from tests.kit.oceanway.billing_finalization_runs import ALGORITHM, DIGEST, MOMENT

GATEWAY: Final = "drive.billing"
"""The workload that presents commands."""

REFERENCES: Final = (
    InvestigationEvidenceReference(reference_type="incident", reference_schema_version="1", reference="incident-7"),
    InvestigationEvidenceReference(reference_type="owner_repair", reference_schema_version="1", reference="repair-7"),
)


@cache
def grant_key() -> Ed25519PrivateKey:
    """The key with which operations signs in these tests."""
    return Ed25519PrivateKey.generate()


@dataclass(frozen=True, slots=True)
class Chain:
    """A complete chain, from which a command is made."""

    request: FinalizationReconciliationRequest
    candidate: FinalizationReconciliationCandidate
    decision: FinalizationReconciliationDecision

    def grant(self, **changes: Any) -> FinalizationReconciliationGrant:
        """The grant for this chain; `changes` falsify it."""
        candidate = self.candidate
        now = int(time())
        jti = f"grant-{uuid4().hex}"
        fields = {
            "finalization_reconciliation_grant_ref": jti,
            "jti": jti,
            "iss": "operations",
            "aud": "billing",
            "sub": GATEWAY,
            "actor_workforce_principal_id": candidate.actor_workforce_principal_id,
            "action": candidate.action,
            "request_digest": self.request.quad().digest,
            "candidate_digest": candidate.quad().digest,
            "decision_digest": self.decision.quad().digest,
            "case_ref": candidate.reconciliation_case_ref,
            "generation": candidate.reconciliation_generation,
            "resolution_revision": 1,
            "investigation_evidence_references_digest": references_digest(candidate.investigation_evidence_references),
            "iat": now - 1,
            "exp": now + 300,
        }
        return FinalizationReconciliationGrant.assemble(**{**fields, **changes})

    def command(self, **changes: Any) -> ResolutionCommand:
        """The command with a signed grant; `changes` falsify the grant."""
        return self.signed(self.grant(**changes))

    def signed(self, grant: FinalizationReconciliationGrant) -> ResolutionCommand:
        """The command with this grant."""
        return ResolutionCommand(self.request, self.candidate, self.decision, sign_grant(grant, grant_key()))


def chain_for(requested: dict[str, Any], *, actor: str = "person-1", verdict: str = "granted") -> Chain:
    """Make the chain that resolves the case of a case requested event."""
    payload = requested["payload"]
    identity = "finalizationCaseIdentityReservation"
    quad = Quad(
        *(payload[f"{identity}{part}"] for part in ("Ref", "SchemaVersion", "DigestAlgorithmVersion", "Digest"))
    )
    shared: dict[str, Any] = {
        "tenant_kind": payload["tenantKind"],
        "tenant_id": payload["tenantId"],
        "workspace_id": payload["workspaceId"],
        "billing_account_id": payload["billingAccountId"],
        "billing_reservation_id": payload["billingReservationId"],
        "run_id": payload["runId"],
        "billing_finalization_fence_id": payload["billingFinalizationFenceId"],
        "reconciliation_case_ref": payload["reconciliationCaseRef"],
        "reconciliation_generation": payload["reconciliationGeneration"],
        **quad_fields("finalization_case_identity_reservation", quad),
        "resolution_revision": 1,
        "resolution_operation_id": resolution_operation_id(
            payload["reconciliationCaseRef"], payload["reconciliationGeneration"]
        ),
        "action": "reevaluate_current_owner_state",
        "actor_workforce_principal_id": actor,
        "investigation_evidence_references": list(REFERENCES),
    }
    request = FinalizationReconciliationRequest.assemble(
        finalization_reconciliation_request_ref=f"request-{uuid4().hex}", **shared, requested_at=MOMENT
    )
    linked = quad_fields("finalization_reconciliation_request", request.quad())
    candidate = FinalizationReconciliationCandidate.assemble(
        finalization_reconciliation_candidate_ref=f"candidate-{uuid4().hex}",
        **shared,
        **linked,
        **quad_fields("finalization_reconciliation_approval", Quad("approval", "1", ALGORITHM, DIGEST)),
        prepared_at=MOMENT,
    )
    decision = FinalizationReconciliationDecision.assemble(
        finalization_reconciliation_decision_ref=f"decision-{uuid4().hex}",
        **shared,
        **linked,
        **quad_fields("finalization_reconciliation_candidate", candidate.quad()),
        verdict=verdict,
        decided_at=MOMENT,
    )
    return Chain(request, candidate, decision)
