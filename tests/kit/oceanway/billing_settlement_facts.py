"""Runs as billing meets them: an admission, a closure, and the settlement inputs of its dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

from oceanway.billing.admission import ReservationAdmission
from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.events.execution import RunFinalizationClosed
from oceanway.contracts.events.metering import SettlementInputCurrentChanged
from oceanway.contracts.facts.admission import AdmittedStep, RunAdmissionManifest
from oceanway.contracts.facts.execution import (
    AttemptSetItem,
    RunAttemptSetManifest,
    RunExecutionFinalizationFact,
    closure_operation_id,
)
from oceanway.contracts.facts.settlement import (
    SettlementEconomicIdentity,
    SettlementInputSnapshot,
    settlement_dimension_id,
)
from oceanway.contracts.identity import Quad, det, quad_fields, quint_fields, quint_of
from oceanway.contracts.quints import Absent, SettlementInputPresent
from seapost.contracts.envelope import new_event_id

if TYPE_CHECKING:
    from oceanway.contracts.quints import OptionalSettlementInput

NOW: Final = "2026-03-01T08:00:00.000000Z"
STEP: Final = "step-1"
_NONE: Final = Quad("made-up", "1", "jcs-sha256-v1", "a" * 64)
_QUINT: Final = "settlement_input_snapshot"
_VERSION: Final = "settlement_input_state_version"


@dataclass(frozen=True)
class Told:
    """An event on its way to a consumer."""

    event_id: UUID
    envelope: bytes
    event_type: str


@dataclass
class Run:
    """One run with one attempt, and as many charge dimensions as it has keys.

    Attributes:
        snapshots: what metering made of each key, oldest first.
    """

    keys: tuple[str, ...] = ("tokens",)
    account: str = field(default_factory=lambda: f"account-{uuid4().hex}")
    reservation: str = field(default_factory=lambda: f"reservation-{uuid4().hex}")
    run: str = field(default_factory=lambda: f"run-{uuid4().hex}")
    attempt: str = field(default_factory=lambda: f"attempt-{uuid4().hex}")
    snapshots: dict[str, list[SettlementInputSnapshot]] = field(default_factory=dict)

    def subject(self, **changes: Any) -> dict[str, Any]:
        """Tenant, account, reservation and run."""
        fields = {
            "tenant_kind": "organization",
            "tenant_id": "tenant-1",
            "workspace_id": "workspace-1",
            "billing_account_id": self.account,
            "billing_reservation_id": self.reservation,
            "run_id": self.run,
        }
        return {**fields, **changes}

    def dimension(self, key: str | None = None) -> str:
        """The settlement dimension of a key."""
        return settlement_dimension_id(self.reservation, STEP, self.attempt, key or self.keys[0])

    def admission(self, amount: str) -> ReservationAdmission:
        """What core asks billing to set aside."""
        return ReservationAdmission(self.manifest(), Decimal(amount), "EUR")

    def manifest(self) -> RunAdmissionManifest:
        """What core admitted."""
        return RunAdmissionManifest.assemble(
            run_admission_manifest_ref=det("run_admission_manifest", self.run),
            **self.subject(),
            steps=[AdmittedStep(run_step_id=STEP, charge_dimension_keys=sorted(self.keys))],
            created_at=NOW,
        )

    def attempts(self) -> RunAttemptSetManifest:
        """The one attempt."""
        item = AttemptSetItem(
            run_step_id=STEP,
            execution_attempt_id=self.attempt,
            **quad_fields("attempt_execution_manifest", _NONE),
        )
        return RunAttemptSetManifest.assemble(
            attempt_set_manifest_ref=det("attempt_set", self.run),
            run_id=self.run,
            attempt_count=1,
            attempts=[item],
            created_at=NOW,
        )

    def closure(self) -> RunExecutionFinalizationFact:
        """The end of the run's execution."""
        return RunExecutionFinalizationFact.assemble(
            run_execution_finalization_ref=det("run_execution_finalization", self.run),
            run_execution_finalization_state_version=1,
            **self.subject(),
            closure_operation_id=closure_operation_id(self.run),
            **quad_fields("run_admission_manifest", self.manifest().quad()),
            **quad_fields("attempt_set_manifest", self.attempts().quad()),
            attempt_count=1,
            closed_at=NOW,
        )

    def closed(self) -> Told:
        """The closure's event."""
        payload = RunFinalizationClosed(
            **self.subject(),
            closure_operation_id=closure_operation_id(self.run),
            run_execution_finalization_state_version=1,
            **quad_fields("run_admission_manifest", self.manifest().quad()),
            **quad_fields("run_execution_finalization", self.closure().quad()),
            **quad_fields("attempt_set_manifest", self.attempts().quad()),
            attempt_count=1,
        )
        event_id = new_event_id()
        return _told(payload, event_id, self.run)

    def economic(self, key: str, **changes: str) -> SettlementEconomicIdentity:
        """What a key means in money."""
        fields = {
            "settlement_dimension_id": self.dimension(key),
            "charge_dimension_key": key,
            "quantity_unit": "token",
            "currency": "EUR",
            "price_book_ref": "prices",
            "price_book_version": "1",
        }
        return SettlementEconomicIdentity.of(**{**fields, **changes})

    def measure(self, quantity: str, key: str | None = None) -> Told:
        """Make the next settlement input of a key current at metering; its event."""
        key = key or self.keys[0]
        line = self.snapshots.setdefault(key, [])
        snapshot = self.snapshot(key, quantity, line[-1] if line else None)
        line.append(snapshot)
        return self.event_of(snapshot)

    def snapshot(
        self, key: str, quantity: str, before: SettlementInputSnapshot | None, *, salt: str = ""
    ) -> SettlementInputSnapshot:
        """A settlement input after another one."""
        predecessor: OptionalSettlementInput = Absent()
        if before is not None:
            quint = quint_of(before, _QUINT, state_version=_VERSION)
            predecessor = SettlementInputPresent(**quint_fields(_QUINT, quint, state_version=_VERSION))
        version = 1 if before is None else before.settlement_input_state_version + 1
        return SettlementInputSnapshot.assemble(
            settlement_input_snapshot_ref=det("settlement_input_snapshot", self.dimension(key), version, salt),
            settlement_input_state_version=version,
            settlement_dimension_id=self.dimension(key),
            **self.place(key),
            settlement_economic_identity=self.economic(key),
            **quad_fields("eligibility_decision", _NONE),
            predecessor=predecessor,
            meter_events=[],
            quantity=quantity,
            created_at=NOW,
        )

    def place(self, key: str | None = None) -> dict[str, Any]:
        """The complete identity of a key's dimension."""
        return {
            **self.subject(),
            "run_step_id": STEP,
            "execution_attempt_id": self.attempt,
            "charge_dimension_key": key or self.keys[0],
        }

    def event_of(self, snapshot: SettlementInputSnapshot, **changes: Any) -> Told:
        """The event of a settlement input, or one that differs in some fields."""
        names = SettlementInputCurrentChanged.model_fields
        fields = {name: getattr(snapshot, name) for name in names}
        payload = SettlementInputCurrentChanged(**{**fields, **changes})
        return _told(payload, new_event_id(), self.run)


def _told(payload: Any, event_id: UUID, correlation_id: str) -> Told:  # noqa: ANN401 - a payload of another owner
    made = envelope_of(payload, event_id=event_id, correlation_id=correlation_id)
    return Told(event_id, made.envelope, payload.event_type)


def told_in_order(run: Run, quantities: Sequence[str]) -> list[Told]:
    """The events of one dimension's inputs, all of them made."""
    return [run.measure(one) for one in quantities]
