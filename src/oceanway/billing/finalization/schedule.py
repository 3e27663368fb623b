"""The next generation of a finalization, from the locked state of its fence: pure (FIN-02, FIN-10, CAT-03, AMB-46).

Whoever advances a watermark - the coordinator for closures and resolutions, the catch-up consumer for settlement
inputs - freezes all watermarks so far into a trigger of the next generation. What it replaces is superseded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from oceanway.contracts.facts.cases import FinalizationReconciliationCaseIdentityReservation, finalization_fence_id
from oceanway.contracts.identity import Quad, det, quad_fields
from oceanway.contracts.quints import Absent, SettlementInputSnapshotItem
from oceanway.contracts.works.finalization import (
    BillingFinalizationTriggerSnapshot,
    BillingFinalizationWork,
    BillingFinalizationWorkAttemptFinished,
    ClosureWatermarkApplied,
    OutcomeSuperseded,
    ResolutionWatermarkApplied,
    billing_finalization_operation_id,
)

if TYPE_CHECKING:
    from oceanway.contracts.facts.admission import RunAdmissionManifest

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The documents of one generation.

    Attributes:
        superseded: the Finish of the work before it, if that work was started and has none.
    """

    trigger: BillingFinalizationTriggerSnapshot
    work: BillingFinalizationWork
    superseded: BillingFinalizationWorkAttemptFinished | None = None


@dataclass(frozen=True, slots=True)
class StartedWork:
    """The latest work while somebody has leased it."""

    work: Quad
    operation_id: str
    work_generation: int
    attempt_number: int
    fencing_token: str


@dataclass(frozen=True, slots=True)
class FenceState:
    """A fence as `billing.finalization_fence_lock_v1` returns it.

    Attributes:
        subject: tenant, account, reservation and run, by wire name.
        state: see Annex A.5.
        settlement: the newest known input of each dimension, sorted.
        generation: of the latest case; 0 when there was none.
    """

    subject: Json
    currency: str
    run_admission_manifest_ref: str
    run_admission_manifest_digest: str
    fence_id: str
    revision: int
    work_generation: int
    state: str
    closure: Absent | ClosureWatermarkApplied
    resolution: Absent | ResolutionWatermarkApplied
    settlement: tuple[SettlementInputSnapshotItem, ...]
    started: StartedWork | None
    generation: int
    case_ref: str | None
    identity: FinalizationReconciliationCaseIdentityReservation | None

    @classmethod
    def of(cls, document: Json) -> Self:
        """Read the state that PostgreSQL put together."""
        case: Json | None = document.get("reconciliation")
        return cls(
            subject=document["subject"],
            currency=document["currency"],
            run_admission_manifest_ref=document["runAdmissionManifestRef"],
            run_admission_manifest_digest=document["runAdmissionManifestDigest"],
            fence_id=document["billingFinalizationFenceId"],
            revision=document["fenceRevision"],
            work_generation=document["latestWorkGeneration"],
            state=document["state"],
            closure=_closure(document["closureWatermark"]),
            resolution=_resolution(document["resolutionWatermark"]),
            settlement=tuple(map(watermark_item, document["settlementWatermarks"])),
            started=_started(document.get("startedWork")),
            generation=0 if case is None else case["generation"],
            case_ref=None if case is None else case["caseRef"],
            identity=None
            if case is None
            else FinalizationReconciliationCaseIdentityReservation.decode(case["identity"]),
        )

    def with_settlement(self, item: SettlementInputSnapshotItem) -> Self:
        """The state after one dimension's watermark advanced to this input."""
        others = [one for one in self.settlement if dimension(one) != dimension(item)]
        return replace(self, settlement=tuple(sorted([*others, item], key=dimension)))


def dimension(item: Any) -> tuple[str, str, str]:  # noqa: ANN401 - every contract with the three fields
    """What dimensions of one reservation are told apart and sorted by (REF-32)."""
    return item.run_step_id, item.execution_attempt_id, item.charge_dimension_key


def first_generation(manifest: RunAdmissionManifest, *, created_at: str) -> Scheduled:
    """What admission orders: generation 1 without a watermark (REF-16)."""
    fence_id = finalization_fence_id(manifest.billing_reservation_id, manifest.run_id)
    return _scheduled(fence_id, 1, 1, Absent(), (), Absent(), created_at)


def next_generation(
    state: FenceState,
    *,
    created_at: str,
    closure: ClosureWatermarkApplied | None = None,
    resolution: ResolutionWatermarkApplied | None = None,
) -> Scheduled:
    """What follows on a locked fence.

    Args:
        created_at: moment of the transaction.
        closure: the watermark that this transaction applies, if any.
        resolution: likewise.
    """
    made = _scheduled(
        state.fence_id,
        state.revision + 1,
        state.work_generation + 1,
        closure or state.closure,
        state.settlement,
        resolution or state.resolution,
        created_at,
    )
    if state.started is None:
        return made
    return replace(made, superseded=superseded_finish(state.started, state.work_generation + 1, created_at))


def superseded_finish(
    started: StartedWork, by_generation: int, finished_at: str
) -> BillingFinalizationWorkAttemptFinished:
    """The Finish of a started work that a newer generation replaces."""
    return BillingFinalizationWorkAttemptFinished.assemble(
        billing_finalization_work_attempt_finished_ref=finish_ref(started.work.ref),
        **quad_fields("billing_finalization_work", started.work),
        billing_finalization_operation_id=started.operation_id,
        work_generation=started.work_generation,
        attempt_number=started.attempt_number,
        fencing_token=started.fencing_token,
        outcome=OutcomeSuperseded(superseded_by_work_generation=by_generation),
        finished_at=finished_at,
    )


def finish_ref(work_ref: str) -> str:
    """A work has one Finish, whatever its outcome."""
    return det("billing_finalization_work_attempt_finished", work_ref)


def _scheduled(
    fence_id: str,
    revision: int,
    generation: int,
    closure: Absent | ClosureWatermarkApplied,
    settlement: Sequence[SettlementInputSnapshotItem],
    resolution: Absent | ResolutionWatermarkApplied,
    created_at: str,
) -> Scheduled:
    trigger = BillingFinalizationTriggerSnapshot.assemble(
        billing_finalization_trigger_snapshot_ref=det("billing_finalization_trigger", fence_id, generation),
        billing_finalization_fence_id=fence_id,
        finalization_fence_revision=revision,
        work_generation=generation,
        closure_watermark=closure,
        settlement_watermarks=list(settlement),
        resolution_watermark=resolution,
        created_at=created_at,
    )
    quad = trigger.quad()
    work = BillingFinalizationWork.assemble(
        billing_finalization_work_ref=det("billing_finalization_work", fence_id, generation),
        billing_finalization_operation_id=billing_finalization_operation_id(fence_id, generation, quad.digest),
        billing_finalization_fence_id=fence_id,
        work_generation=generation,
        **quad_fields("billing_finalization_trigger_snapshot", quad),
        created_at=created_at,
    )
    return Scheduled(trigger, work)


def _closure(document: Json) -> Absent | ClosureWatermarkApplied:
    return Absent() if document["state"] == "none" else ClosureWatermarkApplied.decode(dict(document))


def _resolution(document: Json) -> Absent | ResolutionWatermarkApplied:
    return Absent() if document["state"] == "none" else ResolutionWatermarkApplied.decode(dict(document))


def watermark_item(document: Json) -> SettlementInputSnapshotItem:
    """One settlement watermark read as plain JSON."""
    return SettlementInputSnapshotItem(
        run_step_id=document["runStepId"],
        execution_attempt_id=document["executionAttemptId"],
        charge_dimension_key=document["chargeDimensionKey"],
        ref=document["ref"],
        schema_version=document["schemaVersion"],
        digest_algorithm_version=document["digestAlgorithmVersion"],
        digest=document["digest"],
        state_version=document["stateVersion"],
    )


def _started(document: Json | None) -> StartedWork | None:
    if document is None:
        return None
    work = document["work"]
    return StartedWork(
        work=work_quad(work),
        operation_id=work["billingFinalizationOperationId"],
        work_generation=work["workGeneration"],
        attempt_number=document["attemptNumber"],
        fencing_token=document["fencingToken"],
    )


def work_quad(work: Json) -> Quad:
    """The quad of a work read as plain JSON."""
    prefix = "billingFinalizationWork"
    return Quad(
        work[f"{prefix}Ref"],
        work[f"{prefix}SchemaVersion"],
        work[f"{prefix}DigestAlgorithmVersion"],
        work[f"{prefix}Digest"],
    )
