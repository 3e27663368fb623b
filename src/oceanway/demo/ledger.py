"""What the driver writes down for the auditor: the plan, and every later word that changes what a dimension must cost.

One JSON object in a line, written before the deed, so that a driver that dies has said at least what it did.
The auditor recomputes every amount from these lines alone; it shares no code with billing.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from oceanway.demo.plan import CHARGES, PRICE_BOOK, PlannedRun, plan

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

Place = tuple[str, str]
"""Attempt and charge dimension."""


class LedgerWriter:
    """Appends to a ledger; a line that was written is on the disk."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def day(self, seed: int, runs: int, first: int = 0) -> None:
        """The plan follows from these."""
        self._write([{"record": "day", "seed": seed, "runs": runs, "first": first}])

    def revisions(self, items: Iterable[tuple[str, str, str]]) -> None:
        """Another last word about usage: attempt, charge dimension and quantity."""
        self._write(
            [{"record": "revision", "attempt": one, "charge": key, "quantity": last} for one, key, last in items]
        )

    def command(self, case_ref: str, action: str) -> None:
        """An operator closes an exposure by hand."""
        self._write([{"record": "command", "case": case_ref, "action": action}])

    def _write(self, records: list[dict[str, Any]]) -> None:
        if records:
            _ = self._file.write("".join(json.dumps(one) + "\n" for one in records))
            self._file.flush()
            os.fsync(self._file.fileno())


@dataclass(slots=True)
class Ledger:
    """What must have become of the day.

    Attributes:
        targets: of each place what its charges must come to in the end.
        commands: of each case what the operator commanded.
    """

    runs: tuple[PlannedRun, ...]
    deposits: dict[int, Decimal]
    targets: dict[Place, Decimal] = field(default_factory=dict[Place, Decimal])
    commands: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a ledger; raises `ValueError` when it names no day."""
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        day = next((line for line in lines if line["record"] == "day"), None)
        if day is None:
            raise ValueError(f"{path.name} names no day")
        planned = plan(day["seed"], day["runs"], day["first"])
        ledger = cls(planned.runs, planned.deposits)
        charges = {charge.key: charge for charge in CHARGES}
        for run in planned.runs:
            for attempt in run.attempts:
                ledger.targets |= {(attempt.id, charge.key): attempt.target(charge) for charge in run.charges}
        for line in lines:
            match line["record"]:
                case "revision":
                    charge = charges[line["charge"]]
                    ledger.targets[line["attempt"], charge.key] = charge.amount(line["quantity"])
                case "command":
                    ledger.commands[line["case"]] = line["action"]
                case _:
                    pass
        return ledger


def prices() -> list[tuple[tuple[str, str], str, Decimal]]:
    """The price book of the day: book and version, unit, unit price."""
    return [(PRICE_BOOK, charge.unit, charge.price) for charge in CHARGES]
