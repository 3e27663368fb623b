"""The field types that OceanWay adds to the kernel's: money, quantities, reasons and versions (section 0.2, REF-02)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from seapost.contracts.examination import INTEGER_MAX

NUMBER_LENGTH_MAX: Final = 29

_UNSIGNED: Final = r"(0|[1-9][0-9]{0,17})(\.[0-9]{0,8}[1-9])?"
_NON_ZERO: Final = r"([1-9][0-9]{0,17}(\.[0-9]{0,8}[1-9])?|0\.[0-9]{0,8}[1-9])"

Quantity = Annotated[str, Field(pattern=rf"^{_UNSIGNED}$", max_length=NUMBER_LENGTH_MAX)]
"""A decimal of at least zero in its only spelling: no sign, no exponent, no superfluous zero; 9 fraction digits."""

Amount = Annotated[str, Field(pattern=rf"^(0|-?{_NON_ZERO})$", max_length=NUMBER_LENGTH_MAX)]
"""Money as a decimal in its only spelling; it may be negative, and zero has no sign."""

Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
"""ISO 4217, such as `EUR`."""

ReasonCode = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{2,63}$")]
"""A closed, low-sensitivity reason (REF-34)."""

StateVersion = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
Generation = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
AttemptNumber = Annotated[int, Field(ge=1, le=INTEGER_MAX)]

FencingToken = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,18}$")]
"""A decimal string, strictly increasing with each lease; only equality is ever compared (REF-09)."""
