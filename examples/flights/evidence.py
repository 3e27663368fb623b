"""The judgement: facts of the databases held against what the file foretells. Pure: no database, no process.

Lost is every effect that should be there and is not, doubled every effect that is there once too often. A counter
that is right in number and wrong in sum belongs to neither, so both tables must also be equal cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from examples.flights.expected import Expected
from examples.flights.facts import Facts
from examples.flights.tables import Mileage, Punctuality


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the run came to.

    Attributes:
        lost: effects, events or deliveries that are missing.
        effects_doubled: effects, events or receipts too many.
        stale_settles_accepted: words of superseded attempts that were believed, and rows of `audit_places`.
        kills: processes that SIGKILL has ended, as the supervisor counted.
        redeliveries: attempts beyond the first of each delivery.
        cells_differing: cells of the consumers' tables that are not what the file says.
        findings: a sentence for each thing that is wrong.
    """

    events: int
    deliveries: int
    acknowledged: int
    quarantined: int
    lost: int
    effects_doubled: int
    stale_settles_accepted: int
    kills: int
    redeliveries: int
    cells_differing: int
    findings: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether every promise was kept."""
        return not (self.lost or self.effects_doubled or self.stale_settles_accepted or self.cells_differing)

    def line(self) -> str:
        """The last line of the demo."""
        return (
            f"evidence: events={self.events} deliveries={self.deliveries} acknowledged={self.acknowledged}"
            f" quarantined={self.quarantined} lost={self.lost} effects_doubled={self.effects_doubled}"
            f" stale_settles_accepted={self.stale_settles_accepted} kills={self.kills}"
            f" redeliveries={self.redeliveries}"
        )


def judge(facts: Facts, expected: Expected, *, kills: int) -> Evidence:
    """Compare what is with what must be."""
    missing, surplus = _effects(facts, expected)
    lost = _present({**missing, **_losses(facts, expected)})
    doubled = _present({**surplus, **_surpluses(facts, expected)})
    stale = _present({**facts.stale, "a row of audit_places": len(facts.defects)})
    wrong = list(differing_cells(facts, expected))
    return Evidence(
        events=facts.events,
        deliveries=facts.deliveries,
        acknowledged=facts.acknowledged,
        quarantined=facts.quarantined,
        lost=sum(lost.values()),
        effects_doubled=sum(doubled.values()),
        stale_settles_accepted=sum(stale.values()),
        kills=kills,
        redeliveries=facts.starts - facts.deliveries,
        cells_differing=len(wrong),
        findings=(
            *(f"lost: {what} ({count})" for what, count in lost.items()),
            *(f"doubled: {what} ({count})" for what, count in doubled.items()),
            *(f"stale: {what} ({count})" for what, count in stale.items()),
            *facts.defects,
            *wrong,
        ),
    )


def differing_cells(facts: Facts, expected: Expected) -> Iterator[str]:
    """A sentence for each cell of the consumers' tables that differs from the file."""
    for name, mine, theirs, columns in _both_tables(facts, expected):
        for key in sorted({*mine, *theirs}):
            for column in columns:
                is_now, must_be = _cell(mine, key, column), _cell(theirs, key, column)
                if is_now != must_be:
                    yield f"{name} of {key}: {column} is {is_now}, the file says {must_be}"


def _effects(facts: Facts, expected: Expected) -> tuple[dict[str, int], dict[str, int]]:
    """Deficits and surpluses of the counters that each effect moves by one."""
    missing: dict[str, int] = {}
    surplus: dict[str, int] = {}
    for name, mine, theirs, columns in _both_tables(facts, expected):
        for column in columns:
            if column not in {"flights", "cancelled"}:
                continue
            differences = [
                (_cell(theirs, key, column) or 0) - (_cell(mine, key, column) or 0) for key in {*mine, *theirs}
            ]
            what = f"effects counted in {name}.{column}"
            missing[what] = sum(difference for difference in differences if difference > 0)
            surplus[what] = -sum(difference for difference in differences if difference < 0)
    return missing, surplus


def _losses(facts: Facts, expected: Expected) -> dict[str, int]:
    return {
        "flights of the file without a row of the producer": max(0, expected.events - facts.flights),
        "flights without their event": facts.flights_untold,
        "events of completed flights": max(0, expected.completed - facts.completed),
        "events of cancelled flights": max(0, expected.cancelled - facts.cancelled),
        "deliveries": max(0, expected.deliveries - facts.deliveries),
        "deliveries neither acknowledged nor quarantined": facts.unfinished,
        **{
            f"acknowledged deliveries to {name} without the very receipt": receipts.without_receipt
            for name, receipts in facts.receipts.items()
        },
    }


def _surpluses(facts: Facts, expected: Expected) -> dict[str, int]:
    return {
        "events of completed flights": max(0, facts.completed - expected.completed),
        "events of cancelled flights": max(0, facts.cancelled - expected.cancelled),
        "deliveries": max(0, facts.deliveries - expected.deliveries),
        "events of transactions that were rolled back": facts.taken_back_seen,
        **{f"events with several receipts at {name}": found.several for name, found in facts.receipts.items()},
        **{f"receipts at {name} that no delivery asked for": found.unasked for name, found in facts.receipts.items()},
    }


_Rows = Mapping[str, Punctuality] | Mapping[str, Mileage]


def _both_tables(facts: Facts, expected: Expected) -> Iterator[tuple[str, _Rows, _Rows, tuple[str, ...]]]:
    """Each table by name: the consumer's rows, the rows of the file, and the columns."""
    columns = ("flights", "on_time", "delay_minutes", "cancelled")
    yield "punctuality", facts.tables.punctuality, expected.tables.punctuality, columns
    yield "mileage", facts.tables.mileage, expected.tables.mileage, ("flights", "miles")


def _cell(rows: _Rows, key: str, column: str) -> int | None:
    row = rows.get(key)
    return None if row is None else int(getattr(row, column))


def _present(counts: Mapping[str, int]) -> dict[str, int]:
    return {what: count for what, count in counts.items() if count}
