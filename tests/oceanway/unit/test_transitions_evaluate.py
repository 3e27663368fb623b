"""What a newer input means for the money of a dimension: the arithmetic, for every state and every price."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from oceanway.billing.transitions.evaluate import Change, Money, evaluate

AMOUNTS = st.decimals(min_value=0, max_value=1000, places=2)
SEED = 20_260_301


@st.composite
def moneys(draw: st.DrawFn) -> Money:
    """Any state that bookings can lead to."""
    exposure = draw(st.one_of(st.just(Decimal(0)), st.decimals(min_value="0.01", max_value=1000, places=2)))
    return Money(draw(AMOUNTS), draw(AMOUNTS), exposure)


@pytest.mark.req("REF-50", "APP-08", "APP-09", "APP-10")
@seed(SEED)
@settings(max_examples=300, deadline=None, database=None)
@given(money=moneys(), target=AMOUNTS, available=st.decimals(min_value=-1000, max_value=1000, places=2))
def test_a_change_accounts_for_exactly_the_target(money: Money, target: Decimal, available: Decimal) -> None:
    """Settled, waived and exposure add up to what the input costs, and never more is booked than the account covers."""
    change = evaluate(money, target, available)
    if change is None:
        assert money.settled + money.waived + money.exposure == target
        return
    settled = money.settled + change.booked
    assert settled + change.waived + change.exposure == target
    assert 0 <= change.waived <= money.waived
    assert settled >= 0
    assert change.exposure >= 0
    assert change.booked <= 0 or change.booked <= available
    assert not (change.booked and change.exposure)
    assert not (change.booked < 0 and change.waived), "what was waived is taken back before money is refunded"
    assert (change.kind == "request_open") == (not money.exposure and change.exposure > 0)
    assert (change.kind == "resolve") == (money.exposure > 0 and not change.exposure)
    assert change.covers is (None if change.booked <= 0 and not change.exposure else not change.exposure)
    again = evaluate(Money(settled, change.waived, change.exposure), target, available - change.booked)
    assert again is None, "the same input a second time changes nothing"


@pytest.mark.req("REF-50")
@pytest.mark.parametrize(
    ("settled", "waived", "exposure", "target", "available", "expected"),
    [
        ("3", "0", "0", "3", "0", None),
        ("3", "0", "0", "5", "2", ("adjust", "2", "0", "0")),
        ("3", "0", "0", "5", "1.99", ("request_open", "0", "0", "2")),
        ("3", "0", "0", "1", "0", ("adjust", "-2", "0", "0")),
        ("3", "4", "0", "5", "0", ("adjust", "0", "2", "0")),
        ("3", "4", "0", "1", "0", ("adjust", "-2", "0", "0")),
        ("3", "0", "9", "12", "0", None),
        ("3", "0", "9", "12", "9", ("resolve", "9", "0", "0")),
        ("3", "0", "9", "14", "0", ("adjust", "0", "0", "11")),
        ("3", "0", "9", "11", "0", ("adjust", "0", "0", "8")),
        ("3", "0", "9", "3", "0", ("resolve", "0", "0", "0")),
        ("3", "2", "9", "1", "0", ("resolve", "-2", "0", "0")),
    ],
)
def test_each_case_of_the_rules(
    settled: str, waived: str, exposure: str, target: str, available: str, expected: tuple[str, str, str, str] | None
) -> None:
    """Kind, booking, what stays waived, and the exposure afterwards."""
    money = Money(Decimal(settled), Decimal(waived), Decimal(exposure))
    change = evaluate(money, Decimal(target), Decimal(available))
    if expected is None:
        assert change is None
    else:
        kind, booked, left, open_amount = expected
        assert isinstance(change, Change)
        assert (change.kind, change.booked) == (kind, Decimal(booked))
        assert (change.waived, change.exposure) == (Decimal(left), Decimal(open_amount))
