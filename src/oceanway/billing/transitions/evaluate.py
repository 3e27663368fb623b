"""What a newer input means for the money of a finalized dimension: pure arithmetic (REF-50).

Accounted for is what was settled and what was waived; an open exposure is neither. The difference between what the
input costs and what is accounted for decides. A decrease takes back what was waived before it refunds money, so that
nothing is forgiven twice; an increase that the account does not cover is not booked but held open, for a person to
decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

ZERO: Final = Decimal(0)

Kind = Literal["adjust", "request_open", "resolve"]


@dataclass(frozen=True, slots=True)
class Money:
    """What a dimension has come to.

    Attributes:
        settled: booked to the account's debit.
        waived: given up by command; never negative.
        exposure: the open exposure; zero when there is none.
    """

    settled: Decimal
    waived: Decimal
    exposure: Decimal


@dataclass(frozen=True, slots=True)
class Change:
    """What to do about the difference.

    Attributes:
        booked: moved at once from the account to settled; negative is a refund.
        waived, exposure: afterwards.
        covers: the decision rests on the account covering `claim` (True) or not (False); None: on neither.
        claim: what the account would have to cover.
    """

    kind: Kind
    booked: Decimal
    waived: Decimal
    exposure: Decimal
    covers: bool | None
    claim: Decimal


def evaluate(money: Money, target: Decimal, available: Decimal) -> Change | None:
    """The change that makes the dimension come to `target`, or None when there is nothing to do.

    Args:
        target: what the input costs, rounded to the currency's minor unit; at least zero.
        available: what the account has.
    """
    difference = target - money.settled - money.waived
    if difference <= ZERO:
        return _decrease(money, -difference)
    if available >= difference:
        kind: Kind = "resolve" if money.exposure else "adjust"
        return Change(kind, difference, money.waived, ZERO, covers=True, claim=difference)
    if difference == money.exposure:
        return None
    kind = "adjust" if money.exposure else "request_open"
    return Change(kind, ZERO, money.waived, difference, covers=False, claim=difference)


def _decrease(money: Money, decrease: Decimal) -> Change | None:
    """Take back first what was waived, then refund the rest; an exposure has nothing left to stand for."""
    if not decrease and not money.exposure:
        return None
    taken_back = min(money.waived, decrease)
    kind: Kind = "resolve" if money.exposure else "adjust"
    return Change(kind, taken_back - decrease, money.waived - taken_back, ZERO, covers=None, claim=ZERO)
