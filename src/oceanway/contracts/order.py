"""Rules that many contracts share: sets in canonical order, and counts and values that must agree (section 0.2)."""

from __future__ import annotations

from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from seapost.model.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Sequence


def ascending(*names: str) -> AfterValidator:
    """A list in strictly ascending order, by code point, of these fields of its items or of the items themselves.

    Equal neighbours are duplicates and refused as such.
    """
    key = attrgetter(*names) if names else None

    def check(items: list[Any]) -> list[Any]:
        if len(items) > 1:
            _check_order(items if key is None else [key(item) for item in items])
        return items

    return AfterValidator(check)


def _check_order(keys: Sequence[Any]) -> None:
    for before, after in pairwise(keys):
        if before == after:
            kind = "duplicate"
            raise PydanticCustomError(kind, "The list holds this item twice")
        if before > after:
            kind = "not_sorted"
            raise PydanticCustomError(kind, "The list is not sorted by Unicode code point")


def require_count(stated: int, items: Sequence[object], pointer: str) -> None:
    """Raise `ContractError` unless the count is that of the list."""
    if stated != len(items):
        message = f"The count says {stated}, but there are {len(items)}"
        raise ContractError(message, pointer=pointer, rule="count")


def require_equal(stated: object, expected: object, pointer: str, rule: str) -> None:
    """Raise `ContractError` unless a value is the one that follows from the rest of the document."""
    if stated != expected:
        message = "The value does not follow from the rest of the document"
        raise ContractError(message, pointer=pointer, rule=rule)


def require(condition: bool, message: str, pointer: str, rule: str) -> None:  # noqa: FBT001 - the condition is the point
    """Raise `ContractError` with this message unless the condition holds."""
    if not condition:
        raise ContractError(message, pointer=pointer, rule=rule)
