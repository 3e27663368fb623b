"""Runs as core, execution and metering know them: admissions, closures and settlement inputs, for billing's tests.

```python
run = new_run({"step-1": ("tokens",)}, {"a-1": "step-1"}, account="account-1")
event = run.close()  # the closure event
event = run.measure("a-1", "tokens", "3")  # revision 1 of the settlement input
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final
from uuid import UUID, uuid4

from oceanway.billing.admission import ReservationAdmission
from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.events import OwnerEvent, RunFinalizationClosed, SettlementInputCurrentChanged
from oceanway.contracts.facts.admission import AdmittedStep, RunAdmissionManifest
from oceanway.contracts.facts.cases import finalization_fence_id
from oceanway.contracts.facts.execution import (
    AttemptSetItem,
    RunAttemptSetManifest,
    RunExecutionFinalizationConflictFact,
    RunExecutionFinalizationFact,
    closure_operation_id,
)
from oceanway.contracts.facts.settlement import (
    SettlementEconomicIdentity,
    SettlementInputConflictFact,
    SettlementInputSnapshot,
    settlement_dimension_id,
)
from oceanway.contracts.identity import quad_fields, quint_fields, quint_of
from oceanway.contracts.quints import Absent, SettlementInputPresent
from seapost.contracts.content_addressed import Quad

MOMENT: Final = "2026-06-01T10:00:00.000000Z"
DIGEST: Final = "a" * 64
ALGORITHM: Final = "jcs-sha256-v1"
QUINT: Final = ("settlement_input_snapshot", "settlement_input_state_version")


@dataclass(frozen=True, slots=True)
class Told:
    """An event on its way to billing."""

    event_id: UUID
    event_type: str
    destination: str
    envelope: bytes


@dataclass
class Run:
    """One run and everything that its owners have recorded about it.

    Attributes:
        attempts: each with its step.
        inputs: settlement inputs by attempt and dimension key, oldest first.
        run_conflict: what execution answers instead of the closure, if anything.
        input_conflict: what metering answers instead of any input of this run.
    """

    manifest: RunAdmissionManifest
    amount: Decimal
    attempts: Mapping[str, str]
    attempt_set: RunAttemptSetManifest
    closure: RunExecutionFinalizationFact
    inputs: dict[tuple[str, str], list[SettlementInputSnapshot]] = field(
        default_factory=dict[tuple[str, str], list[SettlementInputSnapshot]]
    )
    run_conflict: RunExecutionFinalizationConflictFact | None = None
    input_conflict: SettlementInputConflictFact | None = None

    @property
    def run_id(self) -> str:
        """Which run it is."""
        return self.manifest.run_id

    @property
    def reservation(self) -> str:
        """What pays for it."""
        return self.manifest.billing_reservation_id

    @property
    def fence(self) -> str:
        """Its finalization fence."""
        return finalization_fence_id(self.reservation, self.run_id)

    def admission(self) -> ReservationAdmission:
        """What core asks billing for."""
        return ReservationAdmission(self.manifest, self.amount, "EUR")

    def subject(self) -> dict[str, Any]:
        """Tenant, account, reservation and run."""
        names = ("tenant_kind", "tenant_id", "workspace_id", "billing_account_id", "billing_reservation_id", "run_id")
        return {name: getattr(self.manifest, name) for name in names}

    def close(self, *, event_id: UUID | None = None, **changes: Any) -> Told:
        """Tell that the run is closed; `changes` falsify the payload."""
        fields: dict[str, Any] = {
            **self.subject(),
            **quad_fields("run_admission_manifest", self.manifest.quad()),
            **quad_fields("run_execution_finalization", self.closure.quad()),
            **quad_fields("attempt_set_manifest", self.attempt_set.quad()),
            "run_execution_finalization_state_version": 1,
            "closure_operation_id": self.closure.closure_operation_id,
            "attempt_count": len(self.attempts),
        }
        return told(
            RunFinalizationClosed(**{**fields, **changes}), self.run_id, "billing_finalization_coordinator", event_id
        )

    def measure(self, attempt: str, key: str, quantity: str, *, currency: str = "EUR") -> Told:
        """Append a settlement input to a dimension and tell that it is current."""
        chain = self.inputs.setdefault((attempt, key), [])
        snapshot = self._snapshot(attempt, key, quantity, chain[-1] if chain else None, currency)
        chain.append(snapshot)
        return self.changed(snapshot)

    def changed(self, snapshot: SettlementInputSnapshot) -> Told:
        """Tell that a settlement input is current."""
        names = SettlementInputCurrentChanged.model_fields
        event = SettlementInputCurrentChanged(**{name: getattr(snapshot, name) for name in names})
        return told(event, self.run_id, "billing_settlement_catch_up")

    def in_conflict(self) -> None:
        """Let execution hold two claims about the closure."""
        self.run_conflict = RunExecutionFinalizationConflictFact.assemble(
            run_execution_finalization_conflict_fact_ref=f"run-conflict:{self.run_id}",
            **self.subject(),
            **_conflict(),
        )

    def inputs_in_conflict(self) -> None:
        """Let metering hold two claims about the newest input of the first dimension."""
        snapshot = next(iter(self.inputs.values()))[-1]
        names = ("run_step_id", "execution_attempt_id", "charge_dimension_key", "settlement_dimension_id")
        self.input_conflict = SettlementInputConflictFact.assemble(
            settlement_input_conflict_fact_ref=f"input-conflict:{self.run_id}",
            **self.subject(),
            **{name: getattr(snapshot, name) for name in names},
            **quint_fields(QUINT[0], quint_of(snapshot, QUINT[0], state_version=QUINT[1]), state_version=QUINT[1]),
            **_conflict(),
        )

    def repaired(self) -> None:
        """Let both owners answer with one claim again."""
        self.run_conflict = self.input_conflict = None

    def _snapshot(
        self, attempt: str, key: str, quantity: str, before: SettlementInputSnapshot | None, currency: str
    ) -> SettlementInputSnapshot:
        step = self.attempts[attempt]
        dimension = settlement_dimension_id(self.reservation, step, attempt, key)
        version = 1 if before is None else before.settlement_input_state_version + 1
        return SettlementInputSnapshot.assemble(
            settlement_input_snapshot_ref=f"input:{dimension}:{version}",
            settlement_input_state_version=version,
            **self.subject(),
            run_step_id=step,
            execution_attempt_id=attempt,
            charge_dimension_key=key,
            settlement_dimension_id=dimension,
            settlement_economic_identity=SettlementEconomicIdentity.of(
                settlement_dimension_id=dimension,
                charge_dimension_key=key,
                quantity_unit="token",
                currency=currency,
                price_book_ref="prices",
                price_book_version="1",
            ),
            **quad_fields("eligibility_decision", Quad(f"decision:{attempt}", "1", ALGORITHM, DIGEST)),
            predecessor=Absent() if before is None else _present(before),
            meter_events=[],
            quantity=quantity,
            created_at=MOMENT,
        )


def told(event: OwnerEvent, run_id: str, destination: str, event_id: UUID | None = None) -> Told:
    """Write the envelope of an event."""
    prepared = envelope_of(event, correlation_id=run_id, event_id=event_id)
    return Told(prepared.event_id, prepared.event_type, destination, prepared.envelope)


def new_run(
    steps: Mapping[str, tuple[str, ...]], attempts: Mapping[str, str], *, account: str, amount: str = "10"
) -> Run:
    """Make a run that no other test knows, with its admission, attempts and closure."""
    run_id = f"run-{uuid4().hex}"
    subject: dict[str, Any] = {
        "tenant_kind": "organization",
        "tenant_id": "tenant",
        "workspace_id": "workspace",
        "billing_account_id": account,
        "billing_reservation_id": f"reservation-{run_id}",
        "run_id": run_id,
    }
    manifest = RunAdmissionManifest.assemble(
        run_admission_manifest_ref=f"admission:{run_id}",
        **subject,
        steps=[
            AdmittedStep(run_step_id=step, charge_dimension_keys=list(keys)) for step, keys in sorted(steps.items())
        ],
        created_at=MOMENT,
    )
    attempt_set = RunAttemptSetManifest.assemble(
        attempt_set_manifest_ref=f"attempts:{run_id}",
        run_id=run_id,
        attempt_count=len(attempts),
        attempts=[
            AttemptSetItem(
                run_step_id=step,
                execution_attempt_id=attempt,
                **quad_fields("attempt_execution_manifest", Quad(f"manifest:{attempt}", "1", ALGORITHM, DIGEST)),
            )
            for step, attempt in sorted((step, attempt) for attempt, step in attempts.items())
        ],
        created_at=MOMENT,
    )
    closure = RunExecutionFinalizationFact.assemble(
        run_execution_finalization_ref=f"closure:{run_id}",
        run_execution_finalization_state_version=1,
        **subject,
        closure_operation_id=closure_operation_id(run_id),
        **quad_fields("run_admission_manifest", manifest.quad()),
        **quad_fields("attempt_set_manifest", attempt_set.quad()),
        attempt_count=len(attempts),
        closed_at=MOMENT,
    )
    return Run(manifest, Decimal(amount), attempts, attempt_set, closure)


def _present(snapshot: SettlementInputSnapshot) -> SettlementInputPresent:
    quint = quint_of(snapshot, QUINT[0], state_version=QUINT[1])
    return SettlementInputPresent(**quint_fields(QUINT[0], quint, state_version=QUINT[1]))


def _conflict() -> dict[str, Any]:
    return {
        "conflict_kind": "content",
        "conflicting_candidate_digest_algorithm_version": ALGORITHM,
        "conflicting_candidate_digest": DIGEST,
        "reason_code": "reported_by_owner",
        "detected_at": MOMENT,
    }
