"""The operations view once more, in memory: a plain fold of all events, which shares no code with the projector."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any


@dataclass(slots=True)
class SeenDimension:
    """One charge dimension: its amount, and the exposure after each of its steps."""

    amount: Decimal = Decimal(0)
    waived: Decimal = Decimal(0)
    steps: dict[int, tuple[str, Decimal]] = field(default_factory=dict[int, tuple[str, Decimal]])

    @property
    def revision(self) -> int:
        """Of the newest step."""
        return max(self.steps, default=0)

    @property
    def exposure_state(self) -> str:
        """What the newest step that spoke of an exposure said."""
        spoken = [state for _, (state, _) in sorted(self.steps.items()) if state != "none"]
        return spoken[-1] if spoken else "none"

    @property
    def exposure(self) -> Decimal:
        """What is open after the newest step."""
        return self.steps[self.revision][1] if self.steps else Decimal(0)


@dataclass(slots=True)
class SeenRun:
    """One run: what was reserved, and what the finalization made of it."""

    reserved: Decimal | None = None
    settled: Decimal | None = None
    released: Decimal | None = None
    is_created: bool = False
    dimensions: dict[tuple[str, str], SeenDimension] = field(default_factory=dict[tuple[str, str], SeenDimension])

    def dimension(self, payload: dict[str, Any]) -> SeenDimension:
        """The dimension that a payload is about."""
        place = (payload["executionAttemptId"], payload["chargeDimensionKey"])
        return self.dimensions.setdefault(place, SeenDimension())


@dataclass(slots=True)
class Fold:
    """What the events say, whatever their order."""

    runs: dict[str, SeenRun] = field(default_factory=dict[str, SeenRun])
    requested: set[str] = field(default_factory=set[str])
    resolved: set[str] = field(default_factory=set[str])
    ended: set[str] = field(default_factory=set[str])
    late_requested: set[str] = field(default_factory=set[str])

    def add(self, event_type: str, payload: dict[str, Any]) -> None:
        """One event; those that operations does not get are passed over."""
        apply = _APPLY.get(event_type)
        if apply is not None:
            apply(self, payload)

    def run(self, payload: dict[str, Any]) -> SeenRun:
        """The run that a payload is about."""
        return self.runs.setdefault(payload["runId"], SeenRun())

    @property
    def cases(self) -> dict[str, str]:
        """Every requested case with its state."""
        first = {case: "ended" if case in self.ended else "open" for case in self.requested}
        late = {case: "resolved" if case in self.resolved else "open" for case in self.late_requested}
        return first | late


def _created(fold: Fold, payload: dict[str, Any]) -> None:
    fold.run(payload).is_created = True


def _reserved(fold: Fold, payload: dict[str, Any]) -> None:
    fold.run(payload).reserved = Decimal(payload["reservedAmount"])


def _finalized(fold: Fold, payload: dict[str, Any]) -> None:
    run = fold.run(payload)
    run.settled, run.released = Decimal(payload["settledAmount"]), Decimal(payload["releasedAmount"])
    for one in payload["dimensions"]:
        run.dimension(one).amount += Decimal(one["amount"])


def _stepped(fold: Fold, payload: dict[str, Any]) -> None:
    """A transition, or a command's result, which ends an exposure."""
    seen = fold.run(payload).dimension(payload)
    seen.amount += Decimal(payload["ledgerDelta"])
    seen.waived += Decimal(payload["waivedDelta"])
    exposure = payload.get("exposure", {"state": "resolved"})
    seen.steps[payload["toRevision"]] = (exposure["state"], Decimal(exposure.get("amount", "0")))


def _late_requested(fold: Fold, payload: dict[str, Any]) -> None:
    fold.late_requested.add(payload["caseRef"])


def _late_resolved(fold: Fold, payload: dict[str, Any]) -> None:
    fold.resolved.add(payload["caseRef"])


def _case_requested(fold: Fold, payload: dict[str, Any]) -> None:
    fold.requested.add(payload["reconciliationCaseRef"])


def _case_ended(fold: Fold, payload: dict[str, Any]) -> None:
    fold.ended.add(payload["reconciliationCaseRef"])


_APPLY = {
    "run.created@2.0": _created,
    "wallet.reserved@2.0": _reserved,
    "billing.finalization.committed@1": _finalized,
    "billing.settlement-transition.committed@1": _stepped,
    "billing.late-settlement-command-result.committed@1": _stepped,
    "billing.late-settlement-exposure.case-requested@1": _late_requested,
    "billing.case-resolution.applied@1": _late_resolved,
    "billing.finalization-reconciliation.case-requested@1": _case_requested,
    "billing.finalization-reconciliation-resolution.applied@1": _case_ended,
}
