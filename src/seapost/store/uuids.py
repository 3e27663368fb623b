"""Identifiers as they come from the database: `uuid.UUID`, made without the checks of its constructor.

A result has two identifiers in every row, and the constructor looks at six possible arguments and a version for each.
Sixteen bytes from PostgreSQL are always a UUID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID, SafeUUID

from psycopg.adapt import Loader
from psycopg.pq import Format
from typing_extensions import override

if TYPE_CHECKING:
    from psycopg.abc import Buffer

UUID_OID: Final = 2950

_new = object.__new__
_set = object.__setattr__  # a UUID refuses its own


class UuidLoader(Loader):
    """Reads `uuid` in binary form; equal in every way to what psycopg's own loader gives."""

    format = Format.BINARY

    @override
    def load(self, data: Buffer) -> UUID:
        """The identifier of 16 bytes."""
        identifier = _new(UUID)
        _set(identifier, "int", int.from_bytes(data, "big"))
        _set(identifier, "is_safe", SafeUUID.unknown)
        return identifier
