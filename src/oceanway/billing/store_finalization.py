"""Billing's finalization as PostgreSQL functions: one thin function for each, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from oceanway.contracts.errors import translating

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.contracts.examination import JSONValue

Json = Mapping[str, Any]
"""A document that PostgreSQL put together."""


@dataclass(frozen=True, slots=True)
class PriceKey:
    """What a unit price is found by."""

    price_book_ref: str
    price_book_version: str
    quantity_unit: str
    currency: str


@dataclass(frozen=True, slots=True)
class Account:
    """The money of one account, as decimal texts."""

    currency: str
    deposited: str
    available: str


@dataclass(frozen=True, slots=True)
class Admission:
    """One reservation with the documents of its first work.

    Attributes:
        manifest: RunAdmissionManifest@1.
        trigger: of generation 1, without watermarks.
    """

    manifest: bytes
    amount: Decimal
    currency: str
    trigger: bytes
    work: bytes


@dataclass(frozen=True, slots=True)
class ClaimedRow:
    """A leased work with what its decision needs of billing."""

    work: bytes
    trigger: bytes
    subject: Json
    run_admission_manifest: bytes
    currency: str
    fence_revision: int
    attempt_number: int
    fencing_token: int
    reconciliation_generation: int
    previous_identity: bytes | None


@dataclass(frozen=True, slots=True)
class Locked:
    """A locked fence, with the resolution that the event names."""

    state: Json
    resolution: bytes | None
    resolution_event_id: UUID | None


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether cases may be entered, and the parts of the command chain that were there when it was opened."""

    enabled: bool
    command_chain: list[str]


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A decision with the identity of the case it requested; None where there is none."""

    document: bytes | None
    case_identity: bytes | None


def open_account(connection: Connection[Any], account: str, currency: str) -> bool:
    """Open an account; whether it is new."""
    return bool(_value(connection, "select billing.account_open_v1(%s, %s)", (account, currency)))


def deposit(connection: Connection[Any], reference: str, account: str, amount: Decimal) -> bool:
    """Book a deposit once; whether it was booked now."""
    return bool(_value(connection, "select billing.account_deposit_v1(%s, %s, %s)", (reference, account, amount)))


def read_account(connection: Connection[Any], account: str) -> Account | None:
    """The money of an account; None for an unknown one."""
    with translating(), connection.cursor(row_factory=class_row(Account)) as cursor:
        return cursor.execute("select * from billing.account_read_v1(%s)", (account,)).fetchone()


def enter_price(connection: Connection[Any], key: PriceKey, unit_price: Decimal) -> bool:
    """Enter one unit price of a version; whether it is new."""
    arguments = (key.price_book_ref, key.price_book_version, key.quantity_unit, key.currency, unit_price)
    return bool(_value(connection, "select billing.account_price_v1(%s, %s, %s, %s, %s)", arguments))


def read_prices(connection: Connection[Any], keys: Sequence[PriceKey]) -> list[str | None]:
    """Unit prices as decimal texts, in order."""
    query = "select unit_price from billing.account_price_read_v1(%s::text[], %s::text[], %s::text[], %s::text[])"
    columns = (
        [key.price_book_ref for key in keys],
        [key.price_book_version for key in keys],
        [key.quantity_unit for key in keys],
        [key.currency for key in keys],
    )
    with translating():
        return [row[0] for row in connection.execute(query, columns)]


def admit(connection: Connection[Any], admissions: Sequence[Admission]) -> int:
    """Admit reservations, all or none; how many are new."""
    query = "select billing.admission_admit_v1(%s::bytea[], %s::numeric[], %s::text[], %s::bytea[], %s::bytea[])"
    columns = (
        [one.manifest for one in admissions],
        [one.amount for one in admissions],
        [one.currency for one in admissions],
        [one.trigger for one in admissions],
        [one.work for one in admissions],
    )
    return int(_value(connection, query, columns))


def hold_fences(connection: Connection[Any], reservations: Sequence[str]) -> None:
    """Lock the fences and settlement watermarks of several reservations in one order."""
    _ = _value(connection, "select billing.finalization_fence_hold_v1(%s::text[])", (list(reservations),))


def lock_fences(connection: Connection[Any], reservations: Sequence[str]) -> dict[str, Json]:
    """Lock fences and their settlement watermarks; the states by reservation, without those not bound yet."""
    query = "select * from billing.finalization_fence_lock_v1(%s::text[])"
    with translating():
        return {row[0]: row[1] for row in connection.execute(query, (list(reservations),))}


def lock_for_event(connection: Connection[Any], reservation: str, resolution_operation_id: str | None) -> Locked | None:
    """Lock the fence that a coordinator event is about; None when the reservation is not bound yet."""
    with translating(), connection.cursor(row_factory=class_row(Locked)) as cursor:
        query = "select * from billing.coordinator_lock_v1(%s, %s)"
        return cursor.execute(query, (reservation, resolution_operation_id)).fetchone()


def apply_closure(
    connection: Connection[Any],
    *,
    expected_revision: int,
    trigger: bytes,
    work: bytes,
    superseded: bytes | None,
    receipt: Mapping[str, JSONValue],
) -> None:
    """Apply the closure event of a run (TX-22)."""
    query = "select billing.coordinator_closure_v1(%s, %s, %s, %s, %s)"
    _ = _value(connection, query, (expected_revision, trigger, work, superseded, Jsonb(dict(receipt))))


def apply_resolution_watermark(
    connection: Connection[Any], *, expected_revision: int, trigger: bytes, work: bytes
) -> None:
    """Apply the resolution of the current case (TX-23)."""
    _ = _value(connection, "select billing.coordinator_resolution_v1(%s, %s, %s)", (expected_revision, trigger, work))


def claim_works(connection: Connection[Any], owner: str, limit: int, lease: timedelta) -> list[ClaimedRow]:
    """Lease works that are due."""
    with translating(), connection.cursor(row_factory=class_row(ClaimedRow)) as cursor:
        query = "select * from billing.finalization_work_claim_v1(%s, %s, %s)"
        return cursor.execute(query, (owner, limit, lease)).fetchall()


def finish_work(connection: Connection[Any], finish: bytes, *, fencing_token: int, expected_revision: int) -> bytes:
    """End a work that cannot go on yet (TX-24); the stored Finish."""
    query = "select billing.finalization_work_finish_v1(%s, %s, %s)"
    return bytes(_value(connection, query, (finish, fencing_token, expected_revision)))


def retry_works(
    connection: Connection[Any], works: Iterable[tuple[str, int]], *, base: timedelta, longest: timedelta
) -> int:
    """Give works back, each by reference and fencing token; how many were still leased."""
    items = list(works)
    query = "select billing.finalization_work_retry_v1(%s::text[], %s::bigint[], %s, %s)"
    return int(_value(connection, query, ([one[0] for one in items], [one[1] for one in items], base, longest)))


def commit_finalization(
    connection: Connection[Any],
    *,
    decision: bytes,
    fact: bytes,
    finish: bytes,
    envelope: bytes,
    fencing_token: int,
    catch_up_works: Sequence[bytes],
    dimension_states: Sequence[Mapping[str, JSONValue]],
) -> bytes:
    """Finalize a reservation (TX-10); the stored fact."""
    query = "select billing.finalization_commit_v1(%s, %s, %s, %s, %s, %s::bytea[], %s)"
    states = Jsonb([dict(one) for one in dimension_states])
    arguments = (decision, fact, finish, envelope, fencing_token, list(catch_up_works), states)
    return bytes(_value(connection, query, arguments))


def require_reconciliation(
    connection: Connection[Any],
    *,
    decision: bytes,
    identity: bytes,
    finish: bytes,
    envelope: bytes,
    fencing_token: int,
    expected_revision: int,
) -> bytes:
    """Enter a case (TX-26); the stored decision."""
    query = "select billing.reconciliation_require_v1(%s, %s, %s, %s, %s, %s)"
    arguments = (decision, identity, finish, envelope, fencing_token, expected_revision)
    return bytes(_value(connection, query, arguments))


def read_gate(connection: Connection[Any]) -> Gate:
    """What the database says about the gate (REF-43)."""
    with translating(), connection.cursor(row_factory=class_row(Gate)) as cursor:
        found = cursor.execute("select * from billing.reconciliation_gate_v1()").fetchone()
    return found or Gate(enabled=False, command_chain=[])


def set_gate(connection: Connection[Any], *, enabled: bool, command_chain: Iterable[str], actor: str) -> None:
    """Open or close the gate."""
    query = "select billing.reconciliation_gate_set_v1(%s, %s::text[], %s)"
    _ = _value(connection, query, (enabled, sorted(command_chain), actor))


def apply_resolution(connection: Connection[Any], *, fact: bytes, envelope: bytes) -> bytes:
    """Apply the resolution of a case (TX-27); the stored fact."""
    return bytes(_value(connection, "select billing.resolution_apply_v1(%s, %s)", (fact, envelope)))


def read_resolutions(connection: Connection[Any], operation_ids: Sequence[str]) -> list[bytes | None]:
    """The stored resolution facts of operations, in order."""
    query = "select document from billing.resolution_read_v1(%s::text[])"
    with translating():
        return [row[0] for row in connection.execute(query, (list(operation_ids),))]


def read_case_request(connection: Connection[Any], case_ref: str) -> str | None:
    """The event that requested a case; None for an unknown one."""
    found = _value(connection, "select billing.resolution_case_v1(%s)", (case_ref,))
    return None if found is None else str(found)


def read_decisions(connection: Connection[Any], refs: Sequence[str]) -> list[StoredDecision]:
    """The stored decisions, in order."""
    with translating(), connection.cursor(row_factory=class_row(StoredDecision)) as cursor:
        query = "select * from billing.finalization_decision_read_v1(%s::text[])"
        return cursor.execute(query, (list(refs),)).fetchall()


def _value(connection: Connection[Any], query: LiteralString, arguments: Sequence[object]) -> Any:  # noqa: ANN401 - one value of a known function
    with translating():
        row = connection.execute(query, arguments).fetchone()
    return None if row is None else row[0]
