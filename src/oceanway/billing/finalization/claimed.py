"""A leased finalization work, with what the database knows around it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from oceanway.billing.finalization.schedule import Json, finish_ref, work_quad
from oceanway.contracts.identity import Quad, quad_fields
from oceanway.contracts.works.finalization import (
    BillingFinalizationWorkAttemptFinished,
    OutcomeClosureEventNotApplied,
    OutcomeFinalized,
    OutcomeReconciliationRequired,
    OutcomeSettlementInputNotApplied,
)

if TYPE_CHECKING:
    from oceanway.billing.store_finalization import ClaimedRow

Outcome = (
    OutcomeClosureEventNotApplied | OutcomeSettlementInputNotApplied | OutcomeReconciliationRequired | OutcomeFinalized
)


@dataclass(frozen=True, slots=True)
class ClaimedWork:
    """One leased work; billing wrote its documents itself, so they are read as plain JSON.

    Attributes:
        trigger: the trigger, by wire name.
        subject: tenant, account, reservation and run, by wire name.
        steps: the admitted steps, each with its charge dimension keys (REF-17).
        admission: quad of the admission manifest.
        coordinator_receipt: fields of the quad by Python name; empty before the closure event.
        generation: cases of this fence so far.
        previous_identity: of the newest one.
    """

    quad: Quad
    trigger_quad: Quad
    operation_id: str
    work_generation: int
    fence_id: str
    trigger: Json
    subject: Json
    steps: dict[str, list[str]]
    admission: Quad
    reserved_amount: str
    currency: str
    coordinator_receipt: dict[str, str]
    fence_revision: int
    attempt_number: int
    fencing_token: int
    generation: int
    previous_identity: bytes | None

    @classmethod
    def of(cls, row: ClaimedRow) -> Self:
        """Read one row."""
        work, trigger = json.loads(row.work), json.loads(row.trigger)
        manifest = json.loads(row.run_admission_manifest)
        subject = dict(row.subject)
        reserved: str = subject.pop("reservedAmount")
        receipt: Json = subject.pop("coordinatorReceipt", None) or {}
        return cls(
            quad=work_quad(work),
            trigger_quad=_quad(trigger, "billingFinalizationTriggerSnapshot"),
            operation_id=work["billingFinalizationOperationId"],
            work_generation=work["workGeneration"],
            fence_id=work["billingFinalizationFenceId"],
            trigger=trigger,
            subject=subject,
            steps={step["runStepId"]: step["chargeDimensionKeys"] for step in manifest["steps"]},
            admission=_quad(manifest, "runAdmissionManifest"),
            reserved_amount=reserved,
            currency=row.currency,
            coordinator_receipt=_receipt(receipt),
            fence_revision=row.fence_revision,
            attempt_number=row.attempt_number,
            fencing_token=row.fencing_token,
            generation=row.reconciliation_generation,
            previous_identity=row.previous_identity,
        )

    @property
    def closure(self) -> Json | None:
        """The closure watermark of the trigger; None before the closure event (FIN-03)."""
        watermark: Json = self.trigger["closureWatermark"]
        return None if watermark["state"] == "none" else watermark

    def subject_fields(self) -> dict[str, Any]:
        """Tenant, account, reservation and run, by Python name."""
        return {PYTHON_NAMES[name]: value for name, value in self.subject.items()}

    def finish(self, outcome: Outcome, finished_at: str) -> BillingFinalizationWorkAttemptFinished:
        """The Finish of this work."""
        return BillingFinalizationWorkAttemptFinished.assemble(
            billing_finalization_work_attempt_finished_ref=finish_ref(self.quad.ref),
            **quad_fields("billing_finalization_work", self.quad),
            billing_finalization_operation_id=self.operation_id,
            work_generation=self.work_generation,
            attempt_number=self.attempt_number,
            fencing_token=str(self.fencing_token),
            outcome=outcome,
            finished_at=finished_at,
        )


PYTHON_NAMES = {
    "tenantKind": "tenant_kind",
    "tenantId": "tenant_id",
    "workspaceId": "workspace_id",
    "projectId": "project_id",
    "billingAccountId": "billing_account_id",
    "billingReservationId": "billing_reservation_id",
    "runId": "run_id",
}
"""The subject's fields as the wire and as Python name them."""


def _quad(document: Json, prefix: str) -> Quad:
    return Quad(
        document[f"{prefix}Ref"],
        document[f"{prefix}SchemaVersion"],
        document[f"{prefix}DigestAlgorithmVersion"],
        document[f"{prefix}Digest"],
    )


def _receipt(document: Json) -> dict[str, Any]:
    prefix = "billingFinalizationCoordinatorConsumerReceipt"
    if not document:
        return {}
    return quad_fields("billing_finalization_coordinator_consumer_receipt", _quad(document, prefix))
