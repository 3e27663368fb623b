"""One thin function per SQL function behind metering's reads (`functions/settlement/`, `functions/validation/`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from oceanway.contracts.errors import translating
from seapost.store.arrays import ByteaArray, TextArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from psycopg import Connection

Standing = tuple["bytes | None", "bytes | None"]
"""A snapshot, and the conflict under which its dimension stands."""

_READ: Final = "select * from metering.settlement_read_v1(%b)"
_CURRENT: Final = "select * from metering.settlement_current_v1(%b)"
_ISSUE: Final = "select * from metering.validation_issue_v1(%b, %b)"
_DECLARE: Final = "select metering.settlement_declare_conflict_v1(%b, %b)"
_REPAIR: Final = "select metering.settlement_repair_v1(%b)"


def snapshots(connection: Connection[Any], refs: Sequence[str]) -> list[Standing]:
    """Snapshots by reference, in order."""
    with translating():
        return [(document, conflict) for document, conflict in call(connection, _READ, (TextArray(refs),))]


def current(connection: Connection[Any], dimensions: Sequence[str]) -> list[Standing]:
    """The current snapshots of dimensions, in order."""
    with translating():
        return [(document, conflict) for document, conflict in call(connection, _CURRENT, (TextArray(dimensions),))]


def issue(connection: Connection[Any], *, dimensions: Sequence[str], documents: Sequence[bytes]) -> list[bytes | None]:
    """Issue validation receipts; the first of each operation, or None where the input is not current any more."""
    with translating():
        rows = call(connection, _ISSUE, (TextArray(dimensions), ByteaArray(documents)))
    return [document for (document,) in rows]


def declare_conflict(connection: Connection[Any], *, dimension: str, document: bytes) -> None:
    """Open a conflict of a dimension."""
    with translating():
        _ = call(connection, _DECLARE, (dimension, document))


def repair(connection: Connection[Any], *, dimension: str) -> bool:
    """End the open conflict of a dimension; whether there was one."""
    with translating():
        [(found,)] = call(connection, _REPAIR, (dimension,))
    return bool(found)
