"""Array parameters in PostgreSQL's binary format, built with one join.

The driver's general list dumper walks every item in Python; on the hot path that cost more than the rest of the
client together. These types are the same arrays with the walk taken out: each is a list whose items are known to have
one type. Wire format: PostgreSQL `array_recv` (dimensions, null flag, element oid, then length-prefixed items).
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEADER = Struct("!5i")
_LENGTH = Struct("!i")
_EMPTY = Struct("!3i")
_INT8 = Struct("!iq")
_INTERVAL = Struct("!iqii")
_NULL = _LENGTH.pack(-1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class UuidArray(list[UUID]):
    """uuid[], as a parameter."""


class ByteaArray(list[bytes]):
    """bytea[], as a parameter."""


class Int8Array(list[int]):
    """bigint[], as a parameter."""


class TextArray(list["str | None"]):
    """text[] whose items may be null, as a parameter."""


class BooleanArray(list[bool]):
    """boolean[], as a parameter."""


class IntervalArray(list[timedelta]):
    """interval[], as a parameter."""


class TimestampArray(list["datetime | None"]):
    """timestamptz[] whose items may be null, as a parameter; each datetime knows its offset."""


class _ArrayDumper(Dumper):
    format = Format.BINARY
    element_oid: ClassVar[int] = 0

    @abstractmethod
    def items(self, obj: Any) -> Iterable[bytes]:  # noqa: ANN401 - each subclass knows its own
        """The items of a non-empty array, each with its length in front."""

    @override
    def dump(self, obj: Any) -> bytes:
        """The array as `array_recv` reads it."""
        if not obj:
            return _EMPTY.pack(0, 0, self.element_oid)
        has_null = 1 if None in obj else 0
        return b"".join((_HEADER.pack(1, has_null, self.element_oid, len(obj), 1), *self.items(obj)))


class _UuidDumper(_ArrayDumper):
    oid = 2951
    element_oid = 2950

    @override
    def items(self, obj: list[UUID]) -> Iterable[bytes]:
        return [b"\x00\x00\x00\x10" + item.bytes for item in obj]


class _ByteaDumper(_ArrayDumper):
    oid = 1001
    element_oid = 17

    @override
    def items(self, obj: list[bytes]) -> Iterable[bytes]:
        return [_LENGTH.pack(len(item)) + item for item in obj]


class _Int8Dumper(_ArrayDumper):
    oid = 1016
    element_oid = 20

    @override
    def items(self, obj: list[int]) -> Iterable[bytes]:
        return [_INT8.pack(8, item) for item in obj]


class _TextDumper(_ArrayDumper):
    oid = 1009
    element_oid = 25

    @override
    def items(self, obj: list[str | None]) -> Iterable[bytes]:
        encoded = [None if item is None else item.encode() for item in obj]
        return [_NULL if item is None else _LENGTH.pack(len(item)) + item for item in encoded]


class _BooleanDumper(_ArrayDumper):
    oid = 1000
    element_oid = 16

    @override
    def items(self, obj: list[bool]) -> Iterable[bytes]:
        return [b"\x00\x00\x00\x01\x01" if item else b"\x00\x00\x00\x01\x00" for item in obj]


class _IntervalDumper(_ArrayDumper):
    oid = 1187
    element_oid = 1186

    @override
    def items(self, obj: list[timedelta]) -> Iterable[bytes]:
        return [_INTERVAL.pack(16, round(item.total_seconds() * 1_000_000), 0, 0) for item in obj]


class _TimestampDumper(_ArrayDumper):
    oid = 1185
    element_oid = 1184

    @override
    def items(self, obj: list[datetime | None]) -> Iterable[bytes]:
        return [_NULL if item is None else _INT8.pack(8, (item - _EPOCH) // _MICROSECOND) for item in obj]


psycopg.adapters.register_dumper(UuidArray, _UuidDumper)
psycopg.adapters.register_dumper(ByteaArray, _ByteaDumper)
psycopg.adapters.register_dumper(Int8Array, _Int8Dumper)
psycopg.adapters.register_dumper(TextArray, _TextDumper)
psycopg.adapters.register_dumper(BooleanArray, _BooleanDumper)
psycopg.adapters.register_dumper(IntervalArray, _IntervalDumper)
psycopg.adapters.register_dumper(TimestampArray, _TimestampDumper)
