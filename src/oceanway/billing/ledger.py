"""Money: what a dimension costs, and whether a reservation's bookings add up (REF-37, REF-50)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

MINOR_UNITS: Final[Mapping[str, int]] = MappingProxyType(
    {
        **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND"), 0),
        **dict.fromkeys(("VUV", "XAF", "XOF", "XPF"), 0),
        **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    }
)
"""Fraction digits of the currencies that have not two (ISO 4217)."""

MINOR_UNITS_USUAL: Final = 2

_EXACT: Final = Context(prec=80, rounding=ROUND_HALF_EVEN)

Kind = Literal["reserve", "settle", "release", "exposure"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One booking; the amount has a sign."""

    kind: Kind
    amount: Decimal


def rounded(value: Decimal, currency: str) -> Decimal:
    """Money in whole minor units of its currency, half to even (REF-37)."""
    digits = MINOR_UNITS.get(currency, MINOR_UNITS_USUAL)
    return value.quantize(Decimal(1).scaleb(-digits), context=_EXACT)


def price_of(quantity: Decimal, unit_price: Decimal, currency: str) -> Decimal:
    """What a quantity costs: the product is exact, only the result is rounded (REF-37)."""
    return rounded(_EXACT.multiply(quantity, unit_price), currency)


def text(amount: Decimal) -> str:
    """An amount in its only spelling: no exponent, no superfluous zero, no negative zero."""
    if not amount:
        return "0"
    spelled = format(amount, "f")
    return spelled.rstrip("0").rstrip(".") if "." in spelled else spelled


def imbalance(entries: Iterable[Entry]) -> Decimal:
    """What a finalized reservation's bookings leave unaccounted for; zero when they add up."""
    signs = {"reserve": 1, "settle": -1, "release": -1, "exposure": -1}
    return sum((signs[entry.kind] * entry.amount for entry in entries), Decimal(0))
