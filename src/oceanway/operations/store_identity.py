"""The identities of finalization cases (`functions/identity/`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from oceanway.contracts.errors import translating
from seapost.store.arrays import Int8Array, TextArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

Reserved = tuple[Literal["reserved", "existing", "conflicting"], "bytes | None"]

_RESERVE: Final = "select * from operations.identity_reserve_v1(%b)"
_READ: Final = "select * from operations.identity_read_v1(%b, %b)"


def reserve(connection: Connection[Any], *, document: bytes) -> Reserved:
    """Reserve an identity; the result, and the first document unless it conflicts (TX-25)."""
    with translating():
        [(result, stored)] = call(connection, _RESERVE, (document,))
    return result, stored


def read(connection: Connection[Any], *, keys: Sequence[tuple[str, int]]) -> list[bytes | None]:
    """The stored identities for pairs of fence and generation, in order."""
    fences, generations = TextArray(fence for fence, _ in keys), Int8Array(generation for _, generation in keys)
    with translating():
        return [document for (document,) in call(connection, _READ, (fences, generations))]
