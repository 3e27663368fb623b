"""The command chain that resolves a finalization case (REF-41, REF-42, CASE-15 to CASE-22).

Request, approval with its preview, candidate, decision, grant, fact: each binds the one before by its quad, and none
of them can carry an amount, a ledger entry, another snapshot or a wish to ignore the conflict.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.cases import CaseFields
from oceanway.contracts.identity import det, digest_of
from oceanway.contracts.order import ascending, require, require_equal
from oceanway.contracts.quads_billing import (
    BillingFinalizationDecisionQuad,
    FinalizationCaseIdentityReservationQuad,
    FinalizationReconciliationApprovalQuad,
    FinalizationReconciliationCandidateQuad,
    FinalizationReconciliationDecisionQuad,
    FinalizationReconciliationGrantQuad,
    FinalizationReconciliationRequestQuad,
    FinalizationReconciliationResolutionAppliedQuad,
)
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Count, Digest, Identifier, Revision, Timestamp

REFERENCES_MAX: Final = 50

ResolutionAction = Literal["reevaluate_current_owner_state"]


class InvestigationEvidenceReference(Contract):
    """Where somebody looked into the conflict. The types are a closed registry, and nobody follows them (CASE-19)."""

    reference_type: Literal["incident", "investigation", "owner_repair", "provider_statement"]
    reference_schema_version: Literal["1"]
    reference: Identifier


References = Annotated[
    list[InvestigationEvidenceReference],
    Field(min_length=1, max_length=REFERENCES_MAX),
    ascending("reference_type", "reference_schema_version", "reference"),
]


def references_digest(references: list[InvestigationEvidenceReference]) -> str:
    """The digest by which a grant names the complete set of references (REF-42)."""
    return digest_of([one.to_json() for one in references])


def resolution_operation_id(case_ref: str, generation: int) -> str:
    """The one operation that resolves a case generation (REF-41)."""
    return det("resolution", case_ref, generation, 1)


class ResolutionFields(CaseFields, FinalizationCaseIdentityReservationQuad):
    """Which case is resolved by which operation, always by re-evaluation."""

    resolution_revision: Literal[1]
    resolution_operation_id: Identifier
    action: ResolutionAction

    @model_validator(mode="after")
    def _one_operation(self) -> Self:
        expected = resolution_operation_id(self.reconciliation_case_ref, self.reconciliation_generation)
        require_equal(self.resolution_operation_id, expected, "/resolutionOperationId", "deterministic_id")
        return self


class CommandFields(ResolutionFields):
    """A link of the chain: the same actor and the same references all along (CASE-19)."""

    actor_workforce_principal_id: Identifier
    investigation_evidence_references: References


class FinalizationReconciliationRequest(
    FinalizationReconciliationRequestQuad,
    CommandFields,
    ContentAddressed,
    prefix="finalizationReconciliationRequest",
    outside=("requestedAt",),
):
    """Somebody asks for a case to be re-evaluated."""

    requested_at: Timestamp


class FinalizationReconciliationApproval(
    FinalizationReconciliationApprovalQuad,
    FinalizationReconciliationRequestQuad,
    BillingFinalizationDecisionQuad,
    ContentAddressed,
    prefix="finalizationReconciliationApproval",
    outside=("approvedAt",),
):
    """Another person saw the decision that the request is about, and approved for a limited time."""

    approver_workforce_principal_id: Identifier
    approved_at: Timestamp
    expires_at: Timestamp


class FinalizationReconciliationCandidate(
    FinalizationReconciliationCandidateQuad,
    CommandFields,
    FinalizationReconciliationRequestQuad,
    FinalizationReconciliationApprovalQuad,
    ContentAddressed,
    prefix="finalizationReconciliationCandidate",
    outside=("preparedAt",),
):
    """The resolution as it would be applied."""

    prepared_at: Timestamp


class FinalizationReconciliationDecision(
    FinalizationReconciliationDecisionQuad,
    CommandFields,
    FinalizationReconciliationRequestQuad,
    FinalizationReconciliationCandidateQuad,
    ContentAddressed,
    prefix="finalizationReconciliationDecision",
    outside=("decidedAt",),
):
    """Operations lets the candidate go ahead, or not."""

    verdict: Literal["granted", "refused"]
    decided_at: Timestamp


class FinalizationReconciliationGrant(
    FinalizationReconciliationGrantQuad,
    ContentAddressed,
    prefix="finalizationReconciliationGrant",
    outside=("iat",),
):
    """The claims of a signed permission to apply one candidate, once. `iat`, `exp`: Unix seconds.

    `sub` is the workload that presents the command, never the one that receives it (SEC-14).
    """

    jti: Identifier
    iss: Literal["operations"]
    aud: Literal["billing"]
    sub: Identifier
    actor_workforce_principal_id: Identifier
    action: ResolutionAction
    request_digest: Digest
    candidate_digest: Digest
    decision_digest: Digest
    case_ref: Identifier
    generation: Revision
    resolution_revision: Literal[1]
    investigation_evidence_references_digest: Digest
    iat: Count
    exp: Count

    @model_validator(mode="after")
    def _lasting(self) -> Self:
        require(self.iat < self.exp, "A grant ends after it begins", "/exp", "range")
        return self


class FinalizationReconciliationResolutionApplied(
    FinalizationReconciliationResolutionAppliedQuad,
    CommandFields,
    FinalizationReconciliationRequestQuad,
    FinalizationReconciliationCandidateQuad,
    FinalizationReconciliationDecisionQuad,
    FinalizationReconciliationGrantQuad,
    ContentAddressed,
    prefix="finalizationReconciliationResolutionApplied",
    outside=("appliedAt",),
):
    """A case is resolved: billing will evaluate the owners' state again."""

    grant_jti: Identifier
    applied_at: Timestamp
