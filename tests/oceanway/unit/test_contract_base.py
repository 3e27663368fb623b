"""The base of the contracts: completed at first use, by one thread at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Annotated, Any, Literal

import pytest
from psycopg import errors as driver
from pydantic import Field

from oceanway.contracts import errors
from oceanway.contracts.base import Contract
from oceanway.contracts.fields import Amount, Currency, Quantity
from oceanway.contracts.published import CONTRACTS
from seapost.model.errors import ContractError
from tests.kit.oceanway.documents import valid

THREADS = 8
_OF_THE_KERNEL = {"ActiveConsumerAck", "CanonicalEventEnvelope", "DeliverySetDefinition"}


class First(Contract):
    """One branch."""

    kind: Literal["first"] = "first"
    quantity: Quantity


class Second(Contract):
    """The other branch."""

    kind: Literal["second"] = "second"
    amount: Amount


class Either(Contract):
    """Nobody has used this class before the test does."""

    parts: list[Annotated[First | Second, Field(discriminator="kind")]]


class Money(Contract):
    """Two numbers and a currency."""

    quantity: Quantity
    amount: Amount
    currency: Currency


@pytest.mark.req("REF-03")
def test_threads_that_meet_an_incomplete_class_all_read_with_it() -> None:
    """Eight threads complete the class at the same moment; each gets the whole document."""
    assert not Either.__pydantic_complete__
    gate = Barrier(THREADS)
    text = b'{"parts":[{"kind":"first","quantity":"1"},{"amount":"-1.5","kind":"second"}]}'

    def read(_: int) -> Either:
        _ = gate.wait(timeout=10)
        return Either.decode(text)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(read, range(THREADS)))
    assert [one.canonical() for one in found] == [text] * THREADS


@pytest.mark.req("REF-03")
def test_every_contract_is_completed_at_first_use_only() -> None:
    """Each class has the base that waits, so that a process pays for what it uses."""
    for entry in CONTRACTS.contracts:
        if entry.name not in _OF_THE_KERNEL:
            assert issubclass(entry.model, Contract), entry.title
            assert entry.model.model_config.get("defer_build")


@pytest.mark.req("REF-02")
@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "quantity",
            ["0", "0.5", "12", "123456789012345678.123456789"],
            ["-1", "-0", "+1", "01", "1.0", "1e3", ".5", ""],
        ),
        (
            "amount",
            ["0", "-0.5", "12", "-12.000000001"],
            ["-0", "+1", "-01", "1.50", "1E3", "1.", "NaN", "0.0000000001"],
        ),
        ("currency", ["EUR"], ["eur", "EURO", "E", ""]),
    ],
)
def test_a_number_has_one_spelling(name: str, good: list[str], bad: list[str]) -> None:
    """Decimal strings without sign of zero, exponent or superfluous zero; never JSON numbers."""
    for text in good:
        assert getattr(valid(Money, **{name: text}), name) == text
    wrong: list[Any] = [*bad, 1, 1.5, None]
    for text in wrong:
        with pytest.raises(ContractError):
            _ = valid(Money, **{name: text})


@pytest.mark.req("REF-07")
def test_each_code_of_the_owners_is_one_error() -> None:
    """Nine codes, nine classes; an error of another class of SQLSTATE passes through unchanged."""
    assert sorted(errors.BY_SQLSTATE) == [f"OW00{number}" for number in range(1, 10)]
    for code, kind in errors.BY_SQLSTATE.items():

        class Raised(driver.Error):
            sqlstate = code

        with pytest.raises(kind) as caught, errors.translating():
            raise Raised("in words")
        assert type(caught.value) is kind
        assert isinstance(caught.value.__cause__, Raised)
    with pytest.raises(driver.UniqueViolation), errors.translating():
        raise driver.UniqueViolation
    with pytest.raises(errors.Stale) as again, errors.translating(), errors.translating():
        raise errors.Stale
    assert again.value.__cause__ is None
