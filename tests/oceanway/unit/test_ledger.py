"""Amounts: exact products, half-even rounding to the minor unit, one spelling; bookings that add up (REF-37)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from oceanway.billing.ledger import Entry, imbalance, price_of, rounded, text
from oceanway.contracts.fields import Amount


@pytest.mark.parametrize(
    ("quantity", "price", "currency", "amount"),
    [
        ("1", "0.005", "EUR", "0"),
        ("3", "0.005", "EUR", "0.02"),
        ("5", "0.005", "EUR", "0.02"),
        ("1", "0.015", "EUR", "0.02"),
        ("1", "0.025", "EUR", "0.02"),
        ("1.000000001", "0.025", "EUR", "0.03"),
        ("7", "0.5", "JPY", "4"),
        ("5", "0.5", "JPY", "2"),
        ("1", "0.0005", "BHD", "0"),
        ("3", "0.0005", "BHD", "0.002"),
        ("999999999999999999.999999999", "1", "EUR", "1000000000000000000"),
    ],
)
def test_an_amount_is_rounded_half_to_even_in_the_minor_unit_of_its_currency(
    quantity: str, price: str, currency: str, amount: str
) -> None:
    """Only the exact product is rounded, never a factor."""
    assert text(price_of(Decimal(quantity), Decimal(price), currency)) == amount


@given(st.decimals(min_value=-(10**15), max_value=10**15, places=9, allow_nan=False))
@settings(max_examples=30)
def test_every_amount_has_the_one_spelling_that_contracts_accept(value: Decimal) -> None:
    """What `text` writes is an `Amount`, and reads back as the same number."""
    spelled = text(value)
    assert TypeAdapter(Amount).validate_python(spelled) == spelled
    assert Decimal(spelled) == value
    assert abs(rounded(value, "EUR") - value) <= Decimal("0.005")


def test_bookings_that_leave_something_over_are_seen() -> None:
    """What was reserved is settled, released or held open, and nothing else."""
    entries = [
        Entry("reserve", Decimal(10)),
        Entry("settle", Decimal(12)),
        Entry("release", Decimal(-2)),
    ]
    assert imbalance(entries) == 0
    assert imbalance([*entries, Entry("exposure", Decimal(1))]) == -1
