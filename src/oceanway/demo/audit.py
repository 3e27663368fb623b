"""The auditor of a day: reads facts and the driver's ledger, recomputes everything, and believes nothing else.

Lost: a planned run, dimension or delivery that has not come to its end, a belief without the consumer's receipt, a view
that is not the fold of the events. Unbalanced: an amount that is not what the ledger of the day says, or a reservation
or account whose entries do not add up. Doubled: one fact that had its effect twice.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import psycopg

from oceanway.demo import store_audit as store
from oceanway.demo.fold import Fold
from oceanway.demo.ledger import Ledger
from oceanway.installation.layout import DATABASE_OF, DESTINATIONS, Database

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KINDS: Final = ("reserve", "settle", "release", "exposure")
ENDED: Final = frozenset({"ended", "resolved"})


@dataclass(slots=True)
class Audit:
    """The figures of a day; each of the last three is a number of defects, described in `defects`."""

    runs: int = 0
    events: int = 0
    deliveries: int = 0
    acknowledged: int = 0
    quarantined: int = 0
    cases: int = 0
    resolved: int = 0
    unbalanced: int = 0
    lost: int = 0
    effects_doubled: int = 0
    defects: list[str] = field(default_factory=list[str])

    def lose(self, what: str) -> None:
        """Something is missing."""
        self.lost += 1
        self.defects.append(f"lost: {what}")

    def tip(self, what: str) -> None:
        """An amount is wrong."""
        self.unbalanced += 1
        self.defects.append(f"unbalanced: {what}")

    def double(self, what: str) -> None:
        """Something happened twice."""
        self.effects_doubled += 1
        self.defects.append(f"doubled: {what}")


def audit(dsns: Mapping[str, str], ledger: Path) -> Audit:
    """Audit the five databases, by name, against the ledger of the day."""
    found = Audit()
    expected = Ledger.read(ledger)
    with ExitStack() as stack:
        sessions = {
            Database(name): stack.enter_context(psycopg.connect(dsn, autocommit=True)) for name, dsn in dsns.items()
        }
        fold = _flow(found, sessions)
        _beliefs(found, sessions)
        billing = sessions[Database.BILLING]
        _reservations(found, billing, expected)
        _dimensions(found, billing, expected)
        _view(found, sessions[Database.CORE], fold)
    return found


def _flow(found: Audit, sessions: Mapping[Database, psycopg.Connection[Any]]) -> Fold:
    """Count what moved, fold every event, and look for two events of one revision."""
    fold = Fold()
    revisions: Counter[tuple[str, str, str, int]] = Counter()
    for database, session in sessions.items():
        events, deliveries, acknowledged, quarantined = store.flow(session)
        found.events += events
        found.deliveries += deliveries
        found.acknowledged += acknowledged
        found.quarantined += quarantined
        if deliveries != acknowledged:
            missing = deliveries - acknowledged
            found.lost += missing - 1
            found.lose(f"{missing} deliveries of {database} have no receipt")
        if misplaced := store.misplaced(session):
            found.lose(f"{misplaced} deliveries of {database} are in no place, or in two")
        for _, event_type, envelope, kind, identity, revision in store.events(session):
            revisions[database, kind, identity, revision] += 1
            fold.add(event_type, json.loads(bytes(envelope))["payload"])
    for key, count in revisions.items():
        if count > 1:
            found.double(f"{count} events of {key}")
    return fold


def _beliefs(found: Audit, sessions: Mapping[Database, psycopg.Connection[Any]]) -> None:
    """Every acknowledgement names a receipt that the consumer holds, with the same digest."""
    held = {
        database: {(event_id, ref): bytes(digest) for event_id, ref, digest in store.receipts(session)}
        for database, session in sessions.items()
    }
    seen: set[tuple[Database, UUID, str]] = set()
    for session in sessions.values():
        for one in store.acknowledgements(session):
            place = DATABASE_OF[DESTINATIONS[one.destination]]
            digest = held[place].get((one.event_id, one.receipt_ref))
            if digest is None or digest != bytes(one.receipt_digest):
                found.lose(f"the receipt of {one.event_id} at {one.destination}")
            seen.add((place, one.event_id, one.receipt_ref))
    total = sum(len(receipts) for receipts in held.values())
    if total != len(seen):
        found.double(f"{total - len(seen)} receipts that no delivery stands for")


def _reservations(found: Audit, billing: psycopg.Connection[Any], expected: Ledger) -> None:
    """Every planned run ended, and every reservation and account adds up."""
    reservations = {one.run_id: one for one in store.reservations(billing)}
    entries = store.ledger(billing)
    found.runs = len(reservations)
    moved: dict[str, Decimal] = {}
    for run in expected.runs:
        one = reservations.get(f"run-{run.name}")
        if one is None:
            found.lose(f"run {run.name} was never admitted")
            continue
        booked = {kind: entries.get(one.reservation_id, {}).get(kind, Decimal(0)) for kind in KINDS}
        _reservation(found, one, booked, run.reserved)
        change = booked["release"] + booked["exposure"] - booked["reserve"]
        moved[one.account_id] = moved.get(one.account_id, Decimal(0)) + change
    for account, deposited, available, booked_in in store.accounts(billing):
        if deposited != booked_in or available != booked_in + moved.get(account, Decimal(0)):
            found.tip(f"{account}: {available} available of {booked_in} deposited, {moved.get(account)} moved")
    for kind, identity in store.stuck(billing):
        found.lose(f"{kind} of {identity} has not ended")
    for ref, kind, count in store.doubled_entries(billing):
        found.double(f"{ref} booked {kind} {count} times")


def _reservation(found: Audit, one: store.Reservation, booked: Mapping[str, Decimal], planned: Decimal) -> None:
    """One reservation ended, as planned, with all of its money accounted for."""
    reserved, *parts = (booked[kind] for kind in KINDS)
    if reserved != planned:
        found.tip(f"{one.run_id}: {reserved} reserved instead of {planned}")
    if one.state != "finalized":
        found.lose(f"{one.run_id} was never settled")
        return
    if reserved != sum(parts):
        found.tip(f"{one.run_id}: {reserved} reserved, {' + '.join(str(part) for part in parts)} accounted for")
    if [one.settled, one.released, one.exposure] != parts:
        found.tip(f"{one.run_id}: the summary is not the sum of its entries")


def _dimensions(found: Audit, billing: psycopg.Connection[Any], expected: Ledger) -> None:
    """Every dimension came to what the last word about it costs; nobody commanded but the operator."""
    targets = dict(expected.targets)
    for one in store.dimensions(billing):
        target = targets.pop((one.attempt, one.charge), None)
        if target is None:
            found.double(f"a dimension {one.charge} of {one.attempt} that nobody planned")
        elif one.settled + one.waived + one.exposure != target:
            found.tip(f"{one.attempt} {one.charge}: {one.settled} + {one.waived} + {one.exposure}, not {target}")
    for attempt, charge in targets:
        found.lose(f"the dimension {charge} of {attempt}")
    done = Counter(store.commands(billing))
    for (case, action), count in done.items():
        if count > 1 or expected.commands.get(case) != action:
            found.double(f"{action} of {case}, {count} times, commanded: {expected.commands.get(case)}")


def _view(found: Audit, core: psycopg.Connection[Any], fold: Fold) -> None:
    """What operations sees is the fold of all events."""
    summaries = {run: amounts for run, *amounts in store.summaries(core)}
    for run_id, run in fold.runs.items():
        if summaries.pop(run_id, None) != [run.reserved, run.settled, run.released]:
            found.lose(f"operations sees {run_id} otherwise than its events say")
    for run_id in summaries:
        found.double(f"operations sees a run {run_id} without events")
    dimensions = {(run, attempt, charge): tuple(rest) for run, attempt, charge, *rest in store.seen_dimensions(core)}
    for run_id, run in fold.runs.items():
        for (attempt, charge), one in run.dimensions.items():
            told = (one.amount, one.waived, one.revision, one.exposure_state, one.exposure)
            if dimensions.pop((run_id, attempt, charge), None) != told:
                found.lose(f"operations sees {charge} of {attempt} otherwise than its events say")
    for place in dimensions:
        found.double(f"operations sees a dimension {place} without events")
    seen, told_cases = store.seen_cases(core), fold.cases
    found.cases = len(told_cases)
    found.resolved = sum(state in ENDED for state in told_cases.values())
    for case in seen.keys() | told_cases.keys():
        if seen.get(case) != told_cases.get(case):
            found.lose(f"operations sees case {case} as {seen.get(case)}, its events say {told_cases.get(case)}")
