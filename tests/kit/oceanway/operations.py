"""The life of a run as operations hears of it: events with real envelopes, and the facts that their owner keeps.

```python
life = Life()
events = [life.run_created(), life.wallet_reserved(), life.finalize("7"), life.open_exposure("3"), life.close("charge")]
```

What a step needs of earlier ones (causes, revisions, cases) it takes from the life; tests deliver in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from uuid import UUID, uuid4

from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.events import (
    BillingFinalizationCommitted,
    CaseResolutionApplied,
    LateSettlementCaseRequested,
    LateSettlementCommandResultCommitted,
    OwnerEvent,
    RunCreated,
    SettlementTransitionCommitted,
    WalletReserved,
)
from oceanway.contracts.events.settlement import OwnerLateCommandResult, OwnerTransition
from oceanway.contracts.facts.settlement import EconomicFields, SettlementEconomicIdentity, settlement_dimension_id
from oceanway.contracts.facts.transitions import (
    ExposureOpen,
    ExposureResolved,
    LateSettlementCommandResult,
    LateSettlementExposure,
    SettlementTransition,
    TransitionFields,
    late_settlement_case_ref,
    late_settlement_operation_id,
    settlement_transition_operation_id,
)
from oceanway.contracts.identity import ALGORITHM, Quad, det, quad_fields
from oceanway.contracts.quints import Absent
from oceanway.contracts.reads_billing import StepLateCommandResult, StepTransition
from oceanway.contracts.works.catch_up import CatchUpBasis
from seapost.contracts.envelope import new_event_id

MOMENT: Final = "2026-06-01T10:00:00.000000Z"
KEY: Final = "tokens"


@dataclass(frozen=True, slots=True)
class Told:
    """An event on its way to operations."""

    event_id: UUID
    event: OwnerEvent
    envelope: bytes


def some_quad(prefix: str) -> dict[str, Any]:
    """Make the four fields of an object that nobody reads."""
    token = uuid4().hex
    return quad_fields(prefix, Quad(f"{prefix}_{token}", "1", ALGORITHM, sha256(token.encode()).hexdigest()))


def some_input(version: int = 1) -> dict[str, Any]:
    """Make a settlement input quint."""
    return {**some_quad("settlement_input_snapshot"), "settlement_input_state_version": version}


class Life:
    """One run with one charged dimension."""

    def __init__(self, account: str | None = None) -> None:
        token = uuid4().hex
        self.run_id = f"run-{token}"
        self.reservation = f"reservation-{token}"
        self.account = account or f"account-{token}"
        self.attempt = f"attempt-{token}"
        self.subject: dict[str, Any] = {
            "tenant_kind": "organization",
            "tenant_id": f"tenant-{token}",
            "workspace_id": f"workspace-{token}",
            "billing_account_id": self.account,
            "billing_reservation_id": self.reservation,
            "run_id": self.run_id,
        }
        self.dimension = settlement_dimension_id(self.reservation, "step-1", self.attempt, KEY)
        self.run_event_id, self.finalization_event_id = new_event_id(), new_event_id()
        self.revision = 0
        self.last_event_id = self.finalization_event_id
        self.open_case: str | None = None
        self.chain: dict[int, StepTransition | StepLateCommandResult] = {}

    def told(
        self,
        event: OwnerEvent,
        *,
        event_id: UUID | None = None,
        cause: UUID | None = None,
        operation: str | None = None,
    ) -> Told:
        """Put a payload into its envelope."""
        event_id = event_id or new_event_id()
        prepared = envelope_of(
            event,
            event_id=event_id,
            causation_id=None if cause is None else str(cause),
            operation_id=operation,
            correlation_id=self.run_id,
        )
        return Told(event_id, event, prepared.envelope)

    def run_created(self, **changes: Any) -> Told:
        """Core admitted the run."""
        fields: dict[str, Any] = {**self.subject, "run_step_ids": ["step-1"], "admitted_at": MOMENT}
        fields |= some_quad("run_admission_manifest")
        return self.told(RunCreated(**{**fields, **changes}), event_id=self.run_event_id)

    def wallet_reserved(self, *, cause: UUID | None = None, **changes: Any) -> Told:
        """Core reserved 10 EUR."""
        fields: dict[str, Any] = {
            **self.subject,
            "reserved_amount": "10",
            "currency": "EUR",
            "reservation_state_version": 1,
        }
        return self.told(WalletReserved(**{**fields, **changes}), cause=cause or self.run_event_id)

    def finalize(self, amount: str = "7", **changes: Any) -> Told:
        """Billing settled the run for an amount of at most 10."""
        dimension = {
            "run_step_id": "step-1",
            "execution_attempt_id": self.attempt,
            "charge_dimension_key": KEY,
            "settlement_dimension_id": self.dimension,
            "amount": amount,
            **some_input(),
        }
        fields: dict[str, Any] = {
            **self.subject,
            "billing_finalization_fence_id": det("finalization_fence", self.reservation, self.run_id),
            **some_quad("billing_finalization_fact"),
            **some_quad("billing_finalization_decision"),
            **some_quad("billing_finalization_work"),
            **some_quad("billing_finalization_coordinator_consumer_receipt"),
            "closure_event_id": str(new_event_id()),
            "closure_event_envelope_digest_algorithm_version": ALGORITHM,
            "closure_event_envelope_sha256": "c" * 64,
            "currency": "EUR",
            "reserved_amount": "10",
            "settled_amount": amount,
            "released_amount": str(10 - int(amount)),
            "dimensions": [dimension],
            "finalization_fence_revision": 3,
            "billing_finalization_operation_id": f"operation-{uuid4().hex}",
            "work_generation": 2,
        }
        event = BillingFinalizationCommitted.model_validate({**fields, **changes}, by_name=True)
        return self.told(event, event_id=self.finalization_event_id)

    def adjust(self, delta: str, *, cause: UUID | None = None, at: int | None = None) -> Told:
        """A newer input was booked at once; `cause` and `at` break the rules for tests that must be refused."""
        exposure = Absent() if self.open_case is None else ExposureOpen(case_ref=self.open_case, amount="2")
        return self._step("adjust", delta, exposure, cause=cause, at=at)[0]

    def open_exposure(self, amount: str) -> list[Told]:
        """The account does not cover a charge: the transition and the case request."""
        self.open_case = late_settlement_case_ref(self.dimension, self.revision + 1)
        step, exposure = self._step("request_open", "0", ExposureOpen(case_ref=self.open_case, amount=amount))
        transition = self.chain[self.revision]
        assert isinstance(transition, StepTransition)
        request = LateSettlementCaseRequested(
            **self._shared(exposure, step),
            **quad_fields("settlement_transition", transition.transition.quad()),
            case_ref=self.open_case,
            exposure_amount=amount,
        )
        return [step, self.told(request, cause=step.event_id)]

    def resolve(self, delta: str = "3") -> list[Told]:
        """A later input brought the exposure to zero: the transition and the resolution."""
        case_ref = self._closing()
        step, exposure = self._step("resolve", delta, ExposureResolved(case_ref=case_ref))
        transition = self.chain[self.revision]
        assert isinstance(transition, StepTransition)
        owner = OwnerTransition(**quad_fields("settlement_transition", transition.transition.quad()))
        return [step, self._resolution(case_ref, exposure, step, owner)]

    def close(self, action: str = "charge") -> list[Told]:
        """A late command closed the exposure: its result and the resolution."""
        case_ref = self._closing()
        before, self.revision = self.revision, self.revision + 1
        step: dict[str, Any] = {
            **self.economic(),
            "from_revision": before,
            "to_revision": self.revision,
            "logical_operation_id": late_settlement_operation_id(case_ref, before),
            "case_ref": case_ref,
            "action": action,
            "actor_workforce_principal_id": "worker-1",
            "ledger_delta": "3" if action == "charge" else "0",
            "waived_delta": "3" if action == "waive" else "0",
            "causation_event_id": str(self.last_event_id),
        }
        result = LateSettlementCommandResult.assemble(
            late_settlement_command_result_ref=f"result-{uuid4().hex}",
            **step,
            **some_quad("late_settlement_command"),
            **some_quad("late_settlement_grant"),
            grant_jti=uuid4().hex,
            committed_at=MOMENT,
        )
        exposure = self._exposure(ExposureResolved(case_ref=case_ref))
        event = LateSettlementCommandResultCommitted(
            **step,
            **quad_fields("late_settlement_command_result", result.quad()),
            **quad_fields("late_settlement_exposure", exposure.quad()),
        )
        told = self.told(event, cause=self.last_event_id, operation=result.logical_operation_id)
        self.chain[self.revision] = StepLateCommandResult(command_result=result, exposure=exposure)
        self.last_event_id = told.event_id
        owner = OwnerLateCommandResult(**quad_fields("late_settlement_command_result", result.quad()))
        return [told, self._resolution(case_ref, exposure, told, owner)]

    def economic(self) -> dict[str, Any]:
        """The full economic identity."""
        return {
            **self.subject,
            "run_step_id": "step-1",
            "execution_attempt_id": self.attempt,
            "charge_dimension_key": KEY,
            "settlement_economic_identity": SettlementEconomicIdentity.of(
                settlement_dimension_id=self.dimension,
                charge_dimension_key=KEY,
                quantity_unit="token",
                currency="EUR",
                price_book_ref="book",
                price_book_version="1",
            ),
        }

    def _closing(self) -> str:
        case_ref, self.open_case = self.open_case, None
        assert case_ref is not None
        return case_ref

    def _step(
        self,
        kind: str,
        delta: str,
        exposure: Absent | ExposureOpen | ExposureResolved,
        *,
        cause: UUID | None = None,
        at: int | None = None,
    ) -> tuple[Told, LateSettlementExposure | None]:
        before = self.revision if at is None else at
        basis = CatchUpBasis.model_validate(
            {
                "settlement_dimension_id": self.dimension,
                "last_evaluated_input": Absent(),
                "target_input": some_input(before + 2),
                "dimension_state_revision": before,
            },
            by_name=True,
        )
        operation = f"logical-{uuid4().hex}"
        place = (self.reservation, "step-1", self.attempt, KEY)
        fields: dict[str, Any] = {
            **self.economic(),
            "from_revision": before,
            "to_revision": before + 1,
            "logical_operation_id": operation,
            "validation_operation_id": settlement_transition_operation_id(
                operation, *place, from_revision=before, basis_digest=basis.basis_digest()
            ),
            "kind": kind,
            "basis_digest_algorithm_version": ALGORITHM,
            "basis_digest": basis.basis_digest(),
            "ledger_delta": delta,
            "waived_delta": "0",
            "exposure": exposure,
            "causation_event_id": str(cause or self.last_event_id),
        }
        transition = SettlementTransition.assemble(
            settlement_transition_ref=f"transition-{uuid4().hex}", **fields, basis=basis, committed_at=MOMENT
        )
        event = SettlementTransitionCommitted(
            **{name: getattr(transition, name) for name in TransitionFields.model_fields},
            **quad_fields("settlement_transition", transition.quad()),
        )
        told = self.told(event, cause=cause or self.last_event_id, operation=operation)
        left = None
        if at is None:
            self.revision += 1
            left = None if isinstance(exposure, Absent) else self._exposure(exposure)
            self.chain[self.revision] = StepTransition(transition=transition, exposure=left)
            self.last_event_id = told.event_id
        return told, left

    def _exposure(self, exposure: ExposureOpen | ExposureResolved) -> LateSettlementExposure:
        opening = next(
            one
            for one in range(self.revision, 0, -1)
            if late_settlement_case_ref(self.dimension, one) == exposure.case_ref
        )
        return LateSettlementExposure.assemble(
            late_settlement_exposure_ref=f"exposure-{uuid4().hex}",
            **self.economic(),
            case_ref=exposure.case_ref,
            opening_revision=opening,
            state_revision=self.revision,
            exposure=exposure,
            recorded_at=MOMENT,
        )

    def _shared(self, exposure: LateSettlementExposure | None, step: Told) -> dict[str, Any]:
        assert exposure is not None
        return {
            **{name: getattr(exposure, name) for name in EconomicFields.model_fields},
            **quad_fields("late_settlement_exposure", exposure.quad()),
            "from_revision": self.revision - 1,
            "to_revision": self.revision,
            "causation_event_id": str(step.event_id),
        }

    def _resolution(
        self,
        case_ref: str,
        exposure: LateSettlementExposure | None,
        step: Told,
        owner: OwnerTransition | OwnerLateCommandResult,
    ) -> Told:
        event = CaseResolutionApplied(**self._shared(exposure, step), case_ref=case_ref, owner=owner)
        return self.told(event, cause=step.event_id)
