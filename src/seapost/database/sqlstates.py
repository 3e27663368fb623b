"""The registry of SQLSTATEs: what the database functions raise, as exceptions of `seapost.model.errors`.

SQL speaks to Python by SQLSTATE, never by message text. Class `SP` is left to implementations by the SQL
standard. psycopg raises such a code as plain `DatabaseError` with `.sqlstate`, so one dictionary maps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType, TracebackType
from typing import Final

import psycopg

from seapost.model.errors import SeapostError

SQLSTATE_LENGTH: Final = 5


def _subclasses(base: type[SeapostError]) -> Iterator[type[SeapostError]]:
    for child in base.__subclasses__():
        yield child
        yield from _subclasses(child)


def build_registry(base: type[SeapostError] = SeapostError) -> Mapping[str, type[SeapostError]]:
    """Collect every error below `base` that names a SQLSTATE of its own, ordered by code.

    Raises:
        ValueError: two errors share a code, or a code is not five characters of class `SP`.
    """
    found: dict[str, type[SeapostError]] = {}
    for error in _subclasses(base):
        code = error.__dict__.get("sqlstate")
        if code is None:
            continue
        if not isinstance(code, str) or len(code) != SQLSTATE_LENGTH or not code.startswith("SP") or not code.isalnum():
            raise ValueError(f"{error.__name__}: {code!r} is not a SQLSTATE of class SP")
        if code in found:
            raise ValueError(f"{error.__name__} and {found[code].__name__} share the SQLSTATE {code}")
        found[code] = error
    return MappingProxyType(dict(sorted(found.items())))


REGISTRY: Final[Mapping[str, type[SeapostError]]] = build_registry()
"""SQLSTATE → exception class."""


def error_for(error: psycopg.Error) -> SeapostError | None:
    """The Seapost error that a database function meant, or None when the error is not one of ours.

    The message and detail are those that the function raised.
    """
    return error_of(error.sqlstate, error.diag.message_primary, error.diag.message_detail)


def error_of(sqlstate: str | None, message: str | None, detail: str | None) -> SeapostError | None:
    """The Seapost error with this SQLSTATE, whatever driver the parts come from; None when it is not one of ours."""
    kind = REGISTRY.get(sqlstate or "")
    return None if kind is None else kind(message, detail=detail)


def driver_error(error: BaseException) -> BaseException | None:
    """The innermost cause that has a SQLSTATE, the error itself included: what a wrapping library was told."""
    found: BaseException | None = None
    cause: BaseException | None = error
    while cause is not None:
        found = found if sqlstate_of(cause) is None else cause
        cause = cause.__cause__
    return found


def sqlstate_of(error: BaseException) -> str | None:
    """The code that psycopg and asyncpg call `sqlstate` and psycopg2 `pgcode`; None for any other error."""
    code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return code if isinstance(code, str) else None


class _Translated:
    """See `translated`; it holds no state, so one instance serves every caller."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, psycopg.Error):
            ours = error_for(error)
            if ours is not None:
                raise ours from error


_TRANSLATED: Final = _Translated()


def translated() -> _Translated:
    """Context manager: raise the Seapost error in place of a psycopg error of class `SP`.

    Synchronous, and may surround awaits. Every other exception passes as it is.
    """
    return _TRANSLATED
