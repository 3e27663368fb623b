"""What the auditor reads: facts, and nothing that a process keeps for itself."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from psycopg import Connection

_FLOW: Final = """
select (select count(*) from seapost.event), (select count(*) from seapost.delivery),
       (select count(*) from seapost.delivery_acknowledgement), (select count(*) from seapost.delivery_quarantine)"""
_PLACES: Final = "select count(*) from seapost.audit_places"
_ACKNOWLEDGED: Final = """
select a.event_id, a.destination, a.receipt_ref, a.receipt_digest from seapost.delivery_acknowledgement as a"""
_RECEIPTS: Final = "select event_id, receipt_ref, receipt_digest from seapost.inbox_receipt"
_EVENTS: Final = """
select e.event_id, e.event_type, e.envelope, e.aggregate_kind, e.aggregate_id, e.aggregate_revision
from seapost.event as e"""

_RESERVATIONS: Final = """
select run_id, billing_reservation_id, billing_account_id, reserved_amount, state, settled, released, exposure_open
from billing.reservation"""
_LEDGER: Final = """
select billing_reservation_id, kind, sum(amount) from billing.ledger_entry group by billing_reservation_id, kind"""
_DOUBLED: Final = """
select source_ref, kind, count(*) from billing.ledger_entry
group by billing_reservation_id, settlement_dimension_id, source_ref, kind having count(*) > 1"""
_ACCOUNTS: Final = """
select a.billing_account_id, a.deposited, a.available,
    coalesce((select sum(d.amount) from billing.deposit as d where d.billing_account_id = a.billing_account_id), 0)
from billing.account as a"""
_DIMENSIONS: Final = """
select execution_attempt_id, charge_dimension_key, settled_amount, waived_amount, exposure_amount, exposure_case_ref
from billing.dimension_state"""
_SETTLED: Final = """
select settlement_dimension_id, sum(amount) from billing.ledger_entry
where kind = 'settle' group by settlement_dimension_id"""
_COMMANDS: Final = "select case_ref, action from billing.late_command_result"
_STUCK: Final = """
select 'finalization', billing_reservation_id from billing.finalization_fence where state <> 'finalized'
union all
select 'catch-up', settlement_dimension_id from billing.catch_up_fence where state <> 'caught_up'"""


class Acknowledgement(NamedTuple):
    """What a dispatcher believed."""

    event_id: UUID
    destination: str
    receipt_ref: str
    receipt_digest: bytes


class Reservation(NamedTuple):
    """A reservation as billing summarises it."""

    run_id: str
    reservation_id: str
    account_id: str
    reserved: Decimal
    state: str
    settled: Decimal
    released: Decimal
    exposure: Decimal


class Dimension(NamedTuple):
    """What one charge dimension came to."""

    attempt: str
    charge: str
    settled: Decimal
    waived: Decimal
    exposure: Decimal
    case_ref: str | None


def flow(connection: Connection[Any]) -> tuple[int, int, int, int]:
    """Events, deliveries, acknowledged and quarantined deliveries of one database."""
    row = connection.execute(_FLOW).fetchone()
    assert row is not None  # noqa: S101 - a select of counts has one row
    return row


def misplaced(connection: Connection[Any]) -> int:
    """Deliveries that are not in exactly one place, and facts without their counterpart, in one database."""
    row = connection.execute(_PLACES).fetchone()
    return 0 if row is None else int(row[0])


def acknowledgements(connection: Connection[Any]) -> Iterator[Acknowledgement]:
    """Every acknowledgement of one database."""
    for row in connection.execute(_ACKNOWLEDGED):
        yield Acknowledgement(*row)


def receipts(connection: Connection[Any]) -> Iterator[tuple[UUID, str, bytes]]:
    """Every receipt that consumers of one database hold."""
    yield from connection.execute(_RECEIPTS)


def events(connection: Connection[Any]) -> Iterator[tuple[UUID, str, bytes, str, str, int]]:
    """Every event of one database: id, type, envelope, aggregate kind, id and revision."""
    yield from connection.execute(_EVENTS)


def reservations(billing: Connection[Any]) -> list[Reservation]:
    """Every reservation."""
    return [Reservation(*row) for row in billing.execute(_RESERVATIONS)]


def ledger(billing: Connection[Any]) -> dict[str, dict[str, Decimal]]:
    """Of each reservation the sum of each kind of entry."""
    found: dict[str, dict[str, Decimal]] = {}
    for reservation, kind, amount in billing.execute(_LEDGER):
        found.setdefault(reservation, {})[kind] = amount
    return found


def doubled_entries(billing: Connection[Any]) -> list[tuple[str, str, int]]:
    """Entries that one fact booked more than once: fact, kind and number."""
    return [(str(ref), str(kind), int(count)) for ref, kind, count in billing.execute(_DOUBLED)]


def accounts(billing: Connection[Any]) -> list[tuple[str, Decimal, Decimal, Decimal]]:
    """Of each account what it says was deposited, what is available, and the sum of its deposits."""
    return list(billing.execute(_ACCOUNTS))


def dimensions(billing: Connection[Any]) -> list[Dimension]:
    """What every dimension came to."""
    return [Dimension(*row) for row in billing.execute(_DIMENSIONS)]


def commands(billing: Connection[Any]) -> list[tuple[str, str]]:
    """Late commands that were carried out: case and action."""
    return list(billing.execute(_COMMANDS))


def stuck(billing: Connection[Any]) -> list[tuple[str, str]]:
    """Fences that have not reached their end: kind and identity."""
    return list(billing.execute(_STUCK))


_SUMMARIES: Final = """
select s.operation_id, s.reserved_amount, f.settled_amount, f.released_amount
from operations.operation_summary as s
left join operations.finalization as f using (projection_version, operation_id)"""
_SEEN_DIMENSIONS: Final = """
select operation_id, execution_attempt_id, charge_dimension_key, coalesce(finalized_amount, 0) + adjusted_amount,
    waived_amount, state_revision, exposure_state, exposure_amount
from operations.settlement_dimension"""
_SEEN_CASES: Final = """
select case_ref, state from operations.finalization_case union all select case_ref, state from operations.late_case"""


def summaries(core: Connection[Any]) -> list[tuple[str, Decimal | None, Decimal | None, Decimal | None]]:
    """What operations sees of each run: reserved, settled at finalization, released at finalization."""
    return list(core.execute(_SUMMARIES))


def seen_dimensions(core: Connection[Any]) -> list[tuple[str, str, str, Decimal, Decimal, int, str, Decimal]]:
    """What operations sees of dimensions: run, attempt, charge, amount, waived, revision, exposure and its amount."""
    return list(core.execute(_SEEN_DIMENSIONS))


def seen_cases(core: Connection[Any]) -> dict[str, str]:
    """Every case that operations sees, with its state."""
    return dict(core.execute(_SEEN_CASES).fetchall())
