"""Admission: reservation, fence and first work in one transaction, paid by an account that covers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from oceanway.billing import admission
from oceanway.contracts.errors import InvalidArgument, NotCovered, NotFound, OwnerConflict
from seapost.model.errors import SeapostError
from tests.kit.database import TestDatabase
from tests.kit.oceanway.billing_finalization import Billing, running_billing
from tests.kit.oceanway.billing_finalization_runs import Run, new_run


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give one billing to all tests here; every test has runs of its own."""
    with running_billing(billing_database) as bench:
        yield bench
        bench.balanced()


def a_run(account: str, amount: str = "10") -> Run:
    """A run that nobody admitted yet."""
    return new_run({"step-1": ("tokens",)}, {"attempt-0": "step-1"}, account=account, amount=amount)


@pytest.mark.req("REF-16", "REF-17", "REF-35", "REF-36", "AMB-05")
def test_an_admission_makes_reservation_fence_and_first_work_once(billing: Billing) -> None:
    """Revision 1, generation 1, no watermark; the account pays; the same admission again changes nothing."""
    run = a_run(billing.account("100"))
    with billing.pool.connection() as connection:
        assert admission.admit(connection, run.admission())
    fence = billing.fence(run)
    assert (fence["fence_revision"], fence["latest_work_generation"], fence["state"]) == (1, 1, "pending")
    assert fence["closure_watermark"] == fence["resolution_watermark"] == {"state": "none"}
    assert billing.ledger(run) == [("reserve", None, "10")]
    assert billing.available(run) == "90"
    kept = billing.one(
        "select run_admission_manifest from billing.reservation where billing_reservation_id = %s", run.reservation
    )
    assert bytes(kept) == run.manifest.canonical()
    before = billing.digest()
    with billing.pool.connection() as connection:
        assert not admission.admit(connection, run.admission())
    assert billing.digest() == before


@pytest.mark.req("REF-16", "AMB-05")
def test_what_an_account_does_not_cover_is_not_admitted(billing: Billing) -> None:
    """All or none of a batch: the third one is too much, so nothing of the three stays."""
    account = billing.account("25")
    runs = [a_run(account) for _ in range(3)]
    before = billing.digest()
    with pytest.raises(NotCovered), billing.pool.connection() as connection:
        admission.admit_many(connection, [run.admission() for run in runs])
    assert billing.digest() == before
    with billing.pool.connection() as connection:
        assert admission.admit_many(connection, [run.admission() for run in runs[:2]]) == 2
        assert admission.admit_many(connection, [run.admission() for run in runs[:2]]) == 0
        assert admission.admit_many(connection, []) == 0
    assert billing.available(runs[0]) == "5"


@pytest.mark.req("REF-16", "AMB-05")
def test_another_admission_of_the_same_run_is_a_conflict(billing: Billing) -> None:
    """Another amount, another manifest, another account currency, or no account at all."""
    run = a_run(billing.account())
    with billing.pool.connection() as connection:
        admission.admit(connection, run.admission())
    good = run.admission()
    other = a_run(run.manifest.billing_account_id).manifest
    manifest = type(other).assemble(
        **{
            name: getattr(other, name)
            for name in type(other).model_fields
            if not name.startswith("run_admission_manifest_") and name != "run_id"
        },
        run_admission_manifest_ref=other.run_admission_manifest_ref,
        run_id=run.run_id,
    )
    stranger = a_run("nobody").admission()
    cases: list[tuple[admission.ReservationAdmission, type[SeapostError]]] = [
        (replace(good, amount=Decimal(11)), OwnerConflict),
        (replace(good, manifest=manifest), OwnerConflict),
        (replace(good, currency="USD"), InvalidArgument),
        (stranger, NotFound),
    ]
    before = billing.digest()
    for wrong, error in cases:
        with pytest.raises(error), billing.pool.connection() as connection:
            admission.admit(connection, wrong)
    assert billing.digest() == before


@pytest.mark.req("REF-37", "REF-50")
def test_accounts_deposits_and_prices_are_entered_once(billing: Billing) -> None:
    """The same again changes nothing, other content under the same name is a conflict, and nonsense is refused."""
    account = billing.account("0")
    key = admission.PriceKey("prices", "2", "token", "EUR")
    with billing.pool.connection() as connection:
        assert not admission.open_account(connection, account, "EUR")
        assert admission.deposit(connection, f"d-{account}", account, Decimal("5.5"))
        assert not admission.deposit(connection, f"d-{account}", account, Decimal("5.5"))
        assert admission.enter_price(connection, key, Decimal("0.1"))
        assert not admission.enter_price(connection, key, Decimal("0.10"))
        found = admission.read_account(connection, account)
    assert found == admission.Account("EUR", "5.5", "5.5")
    attempts: list[tuple[type[Exception], Callable[[Connection[Any]], object]]] = [
        (OwnerConflict, lambda c: admission.open_account(c, account, "USD")),
        (OwnerConflict, lambda c: admission.deposit(c, f"d-{account}", account, Decimal(6))),
        (OwnerConflict, lambda c: admission.enter_price(c, key, Decimal("0.2"))),
        (NotFound, lambda c: admission.deposit(c, "d", "nobody", Decimal(1))),
        (psycopg.errors.CheckViolation, lambda c: admission.deposit(c, "d", account, Decimal(-1))),
        (psycopg.errors.CheckViolation, lambda c: admission.open_account(c, "new", "euro")),
    ]
    for error, attempt in attempts:
        with pytest.raises(error), billing.pool.connection() as connection:
            _ = attempt(connection)
