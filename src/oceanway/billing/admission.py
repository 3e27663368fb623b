"""Admission: what a run may cost is set aside before it starts, and its finalization is ordered (REF-16, AMB-05).

One transaction of billing makes the reservation, the finalization fence of revision 1 and the first work, whose trigger
has no watermark yet; nothing of it waits for the core, and the same admission again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from oceanway.billing import store_finalization as store
from oceanway.billing.finalization.schedule import first_generation
from oceanway.billing.store_finalization import Account, PriceKey

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.contracts.facts.admission import RunAdmissionManifest

__all__ = [
    "Account",
    "PriceKey",
    "ReservationAdmission",
    "admit",
    "admit_many",
    "deposit",
    "enter_price",
    "open_account",
    "read_account",
]


@dataclass(frozen=True, slots=True)
class ReservationAdmission:
    """What core asks billing to set aside for one run.

    Attributes:
        manifest: whose run it is, its account and reservation, its steps and what each may be charged for (REF-17).
        amount: money to reserve, a decimal of at least zero with at most nine fraction digits.
        currency: ISO 4217, that of the account.
    """

    manifest: RunAdmissionManifest
    amount: Decimal
    currency: str


def admit(connection: Connection[Any], admission: ReservationAdmission) -> bool:
    """Reserve for one run in the caller's transaction; whether it is new.

    Raises:
        NotCovered: the account does not cover the amount.
        NotFound: there is no such account.
        OwnerConflict: the reservation or the run was admitted with other content.
        InvalidArgument: the account has another currency.
    """
    return admit_many(connection, [admission]) == 1


def admit_many(connection: Connection[Any], admissions: Sequence[ReservationAdmission]) -> int:
    """Reserve for several runs, all or none; how many are new. Errors as for `admit`."""
    return store.admit(connection, [_written(one) for one in admissions]) if admissions else 0


def _written(admission: ReservationAdmission) -> store.Admission:
    manifest = admission.manifest
    scheduled = first_generation(manifest, created_at=manifest.created_at)
    return store.Admission(
        manifest=manifest.canonical(),
        amount=admission.amount,
        currency=admission.currency,
        trigger=scheduled.trigger.canonical(),
        work=scheduled.work.canonical(),
    )


def open_account(connection: Connection[Any], account: str, currency: str) -> bool:
    """Open an account, or confirm it; whether it is new. `OwnerConflict`: it has another currency."""
    return store.open_account(connection, account, currency)


def deposit(connection: Connection[Any], reference: str, account: str, amount: Decimal) -> bool:
    """Book a deposit once by its reference; whether it was booked now."""
    return store.deposit(connection, reference, account, amount)


def read_account(connection: Connection[Any], account: str) -> Account | None:
    """The money of an account; None for an unknown one."""
    return store.read_account(connection, account)


def enter_price(connection: Connection[Any], key: PriceKey, unit_price: Decimal) -> bool:
    """Enter one unit price of a version of a price book; whether it is new.

    `OwnerConflict`: the version has another one.
    """
    return store.enter_price(connection, key, unit_price)
