"""The finalization cases of one fence, generation by generation, and billing as a peer that answers about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

from psycopg import Connection

from oceanway.contracts.events import (
    FinalizationReconciliationCaseRequested,
    FinalizationReconciliationResolutionAppliedEvent,
)
from oceanway.contracts.facts.cases import (
    CasePredecessorDirect,
    FinalizationReconciliationCaseIdentityReservation,
    case_request_operation_id,
    finalization_case_ref,
)
from oceanway.contracts.facts.finalization import (
    BillingFinalizationDecision,
    DecisionReconciliationRequired,
    ReasonExecutionConflict,
)
from oceanway.contracts.facts.resolution import (
    FinalizationReconciliationResolutionApplied,
    InvestigationEvidenceReference,
    ResolutionFields,
    resolution_operation_id,
)
from oceanway.contracts.identity import det, quad_fields, quad_of
from oceanway.contracts.quints import Absent
from oceanway.contracts.reads import A, Conflicting, NotFound, R, ReadOperation
from oceanway.contracts.reads_billing import (
    READ_BILLING_FINALIZATION_DECISION_FOR_OPERATIONS,
    READ_LATE_SETTLEMENT_EXPOSURE_CHAIN_FOR_OPERATIONS,
    READ_RESOLUTION_APPLIED_FOR_OPERATIONS,
    DecisionFound,
    ExposureChainFound,
    ResolutionFound,
)
from oceanway.operations import identity
from oceanway.reads.client import OwnerUnreadable
from tests.kit.oceanway.operations import MOMENT, Life, Told, some_quad

REFERENCES: Final = [
    InvestigationEvidenceReference(reference_type="incident", reference_schema_version="1", reference="INC-1")
]
_IDENTITY: Final = "finalization_case_identity_reservation"


class Cases:
    """The case generations of one run."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.fence = det("finalization_fence", life.reservation, life.run_id)
        self.identities: dict[int, FinalizationReconciliationCaseIdentityReservation] = {}
        self.decisions: dict[int, BillingFinalizationDecision] = {}
        self.resolutions: dict[int, FinalizationReconciliationResolutionApplied] = {}

    def fields(self, generation: int) -> dict[str, Any]:
        """Everything that an identity and its request both say."""
        return {
            **self.life.subject,
            "billing_finalization_fence_id": self.fence,
            "reconciliation_case_ref": finalization_case_ref(self.fence, generation),
            "reconciliation_generation": generation,
            "expected_resolution_revision": 1,
            "case_request_operation_id": case_request_operation_id(self.fence, generation),
        }

    def identity(self, generation: int) -> FinalizationReconciliationCaseIdentityReservation:
        """The identity of a generation, as billing wants to reserve it."""
        if generation not in self.identities:
            predecessor: Absent | CasePredecessorDirect = Absent()
            if generation > 1:
                before = self.identity(generation - 1)
                predecessor = CasePredecessorDirect(
                    reconciliation_case_ref=before.reconciliation_case_ref,
                    reconciliation_generation=generation - 1,
                    **quad_fields(_IDENTITY, before.quad()),
                )
            self.identities[generation] = FinalizationReconciliationCaseIdentityReservation.assemble(
                **{f"{_IDENTITY}_ref": det("finalization_case_identity", self.fence, generation)},
                **self.fields(generation),
                predecessor=predecessor,
                reserved_at=MOMENT,
            )
        return self.identities[generation]

    def reserve(self, connection: Connection[Any], up_to: int) -> None:
        """Reserve generations 1 to `up_to`."""
        for generation in range(1, up_to + 1):
            assert identity.reserve(connection, self.identity(generation)).answer.result != "conflicting"

    def request(self, generation: int, **changes: Any) -> Told:
        """Billing could not settle and asks for a case."""
        operation = f"finalization-{uuid4().hex}"
        decision = BillingFinalizationDecision.assemble(
            billing_finalization_decision_ref=f"decision-{uuid4().hex}",
            **some_quad("billing_finalization_work"),
            **some_quad("billing_finalization_trigger_snapshot"),
            billing_finalization_operation_id=operation,
            work_generation=generation + 2,
            outcome=DecisionReconciliationRequired(
                reason=ReasonExecutionConflict(**some_quad("run_execution_finalization_conflict_fact"))
            ),
            decided_at=MOMENT,
        )
        self.decisions[generation] = decision
        fields: dict[str, Any] = {
            **self.fields(generation),
            **quad_fields(_IDENTITY, self.identity(generation).quad()),
            **quad_fields("billing_finalization_decision", decision.quad()),
            **quad_fields("triggering_billing_finalization_work", quad_of(decision, "billing_finalization_work")),
            "billing_finalization_operation_id": operation,
            "triggering_billing_finalization_work_generation": generation + 2,
            "reason": "execution_conflict",
        }
        event = FinalizationReconciliationCaseRequested(**{**fields, **changes})
        return self.life.told(event, operation=event.case_request_operation_id)

    def resolve(self, generation: int) -> Told:
        """Billing applied a resolution."""
        fields = self.fields(generation)
        case_ref = fields["reconciliation_case_ref"]
        del fields["expected_resolution_revision"], fields["case_request_operation_id"]
        fact = FinalizationReconciliationResolutionApplied.assemble(
            finalization_reconciliation_resolution_applied_ref=f"resolution-{uuid4().hex}",
            **fields,
            **quad_fields(_IDENTITY, self.identity(generation).quad()),
            resolution_revision=1,
            resolution_operation_id=resolution_operation_id(case_ref, generation),
            action="reevaluate_current_owner_state",
            actor_workforce_principal_id="worker-1",
            investigation_evidence_references=REFERENCES,
            **some_quad("finalization_reconciliation_request"),
            **some_quad("finalization_reconciliation_candidate"),
            **some_quad("finalization_reconciliation_decision"),
            **some_quad("finalization_reconciliation_grant"),
            grant_jti=uuid4().hex,
            applied_at=MOMENT,
        )
        self.resolutions[generation] = fact
        event = FinalizationReconciliationResolutionAppliedEvent(
            **{name: getattr(fact, name) for name in ResolutionFields.model_fields},
            actor_workforce_principal_id=fact.actor_workforce_principal_id,
            **quad_fields("finalization_reconciliation_resolution_applied", fact.quad()),
        )
        return self.life.told(event, operation=event.resolution_operation_id)


class BillingPeer:
    """Billing in memory: answers the three reads of the projector from the lives it knows.

    Attributes:
        down: nobody is answered.
        blind: what it knows nothing of for the moment, by wire name of the read.
        lying: what it answers `conflicting`, likewise.
    """

    def __init__(self) -> None:
        self.lives: dict[str, Life] = {}
        self.cases: dict[str, Cases] = {}
        self.down = False
        self.blind: set[str] = set()
        self.lying: set[str] = set()
        self.asked: list[str] = []
        self.during: Callable[[], None] | None = None

    def know(self, life: Life) -> Cases:
        """Answer about this run from now on."""
        self.lives[life.run_id] = life
        return self.cases.setdefault(life.run_id, Cases(life))

    def call(self, operation: ReadOperation[A, R], arguments: Sequence[A]) -> list[R]:
        """See `oceanway.reads.client.Reader`."""
        self.asked += [operation.name] * len(arguments)
        if self.during is not None:
            self.during()
        if self.down:
            raise OwnerUnreadable("billing", operation.name, "it is down")
        make: Any = operation.answer
        return [make(answer=self._answer(operation, one)) for one in arguments]

    def _answer(self, operation: ReadOperation[Any, Any], asked: Any) -> Any:  # noqa: ANN401 - of any read
        if operation.name in self.blind:
            return NotFound()
        if operation.name in self.lying:
            return Conflicting()
        cases = self.cases[asked.run_id]
        if operation is READ_BILLING_FINALIZATION_DECISION_FOR_OPERATIONS:
            return DecisionFound(decision=cases.decisions[asked.reconciliation_generation])
        if operation is READ_RESOLUTION_APPLIED_FOR_OPERATIONS:
            return ResolutionFound(resolution=cases.resolutions[asked.reconciliation_generation])
        assert operation is READ_LATE_SETTLEMENT_EXPOSURE_CHAIN_FOR_OPERATIONS
        steps = [self.lives[asked.run_id].chain[one] for one in range(asked.from_revision + 1, asked.to_revision + 1)]
        return ExposureChainFound(chain_count=len(steps), chain=steps)
