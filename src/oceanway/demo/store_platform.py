"""What the supervisor asks the databases while a day is settled; it only looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from psycopg import Connection

_FLOW: Final = """
select (select count(*) from seapost.event),
       (select count(*) from seapost.delivery_acknowledgement),
       (select count(*) from seapost.delivery_ready),
       (select count(*) from seapost.delivery_lease),
       (select count(*) from seapost.delivery_quarantine)"""
_FINALIZED: Final = "select count(*) from billing.reservation where state = 'finalized'"
_LEASES: Final = "select count(*) from seapost.delivery_lease where destination = any(%s)"

_METERING_WORKS: Final = """
select 'work.metering', count(*), count(*) filter (where lease_expires_at > clock_timestamp())
from metering.lane where active_work_ref is not null"""
_BILLING_WORKS: Final = """
select 'work.finalization', count(*), count(*) filter (where lease_expires_at > clock_timestamp())
from billing.finalization_fence where state = 'pending'
union all
select 'work.catch-up', count(*), count(*) filter (where lease_expires_at > clock_timestamp())
from billing.catch_up_fence where state = 'pending_verification'"""


@dataclass(frozen=True, slots=True)
class Flow:
    """How the events of one database stand.

    Attributes:
        ready, leased: deliveries that wait, and those that a dispatcher holds.
    """

    events: int
    acknowledged: int
    ready: int
    leased: int
    quarantined: int

    @property
    def under_way(self) -> int:
        """Deliveries that are not settled."""
        return self.ready + self.leased


def flow(connection: Connection[Any]) -> Flow:
    """Count in one database."""
    row = connection.execute(_FLOW).fetchone()
    assert row is not None  # noqa: S101 - a select of counts has one row
    return Flow(*row)


@dataclass(frozen=True, slots=True)
class Works:
    """How the works of one loop stand: `process` runs them, `waiting` are not finished, `leased` of these are held."""

    process: str
    waiting: int
    leased: int


def metering_works(connection: Connection[Any]) -> list[Works]:
    """Count in Metering's database."""
    return [Works(*row) for row in connection.execute(_METERING_WORKS).fetchall()]


def billing_works(connection: Connection[Any]) -> list[Works]:
    """Count in Billing's database."""
    return [Works(*row) for row in connection.execute(_BILLING_WORKS).fetchall()]


def finalized(connection: Connection[Any]) -> int:
    """Reservations that are finalized, in Billing's database."""
    row = connection.execute(_FINALIZED).fetchone()
    return 0 if row is None else int(row[0])


def leased(connection: Connection[Any], destinations: list[str]) -> int:
    """Deliveries to these destinations that are in a dispatcher's hands."""
    row = connection.execute(_LEASES, (destinations,)).fetchone()
    return 0 if row is None else int(row[0])
