"""What the consumers' tables must hold at the end, worked out from the file alone.

Nothing here knows events, databases or handlers, and nothing there knows this file: it is the second opinion.
It reads columns by position and sums with counters, where the consumers read payloads and add one row at a time.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import Final

from examples.flights.data import Selection, open_file
from examples.flights.tables import NO_TAILNUM, Mileage, Punctuality, Tables

ABSENT: Final = ("NA", "")
ON_TIME_MINUTES_MAX: Final = 15

_MONTH, _DEPARTED, _ARRIVAL_DELAY, _CARRIER, _TAILNUM, _DISTANCE = 1, 3, 8, 9, 11, 15


@dataclass(frozen=True, slots=True)
class Expected:
    """The end as the file foretells it: how many flights left or were cancelled, and both tables."""

    completed: int
    cancelled: int
    tables: Tables

    @property
    def events(self) -> int:
        """One event for each flight."""
        return self.completed + self.cancelled

    @property
    def deliveries(self) -> int:
        """A completed flight goes to both consumers, a cancelled one to punctuality only."""
        return 2 * self.completed + self.cancelled


def compute(selection: Selection) -> Expected:
    """Sum up the chosen lines of the file."""
    with open_file() as text:
        lines = csv.reader(text)
        _ = next(lines)
        chosen = (line for line in lines if selection.month is None or line[_MONTH] == str(selection.month))
        return sum_up(list(islice(chosen, selection.count_max)))


def sum_up(lines: list[list[str]]) -> Expected:
    """Sum up lines of the file, each a list of its columns."""
    left = [line for line in lines if line[_DEPARTED] not in ABSENT]
    stayed = [line for line in lines if line[_DEPARTED] in ABSENT]
    delays = [(line[_CARRIER], int(line[_ARRIVAL_DELAY])) for line in left if line[_ARRIVAL_DELAY] not in ABSENT]
    flights = Counter(line[_CARRIER] for line in left)
    cancelled = Counter(line[_CARRIER] for line in stayed)
    on_time = Counter(carrier for carrier, delay in delays if delay <= ON_TIME_MINUTES_MAX)
    minutes: Counter[str] = Counter()
    for carrier, delay in delays:
        minutes[carrier] += delay
    aircraft = Counter(_aircraft(line) for line in left)
    miles: Counter[str] = Counter()
    for line in left:
        miles[_aircraft(line)] += int(line[_DISTANCE])
    return Expected(
        completed=len(left),
        cancelled=len(stayed),
        tables=Tables(
            punctuality={
                carrier: Punctuality(flights[carrier], on_time[carrier], minutes[carrier], cancelled[carrier])
                for carrier in sorted({*flights, *cancelled})
            },
            mileage={tailnum: Mileage(aircraft[tailnum], miles[tailnum]) for tailnum in sorted(aircraft)},
        ),
    )


def _aircraft(line: list[str]) -> str:
    return NO_TAILNUM if line[_TAILNUM] in ABSENT else line[_TAILNUM]
