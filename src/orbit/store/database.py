"""The pool of a part of Orbit: named, limited in time, and repeating whole transactions that lost a race (LCK-11)."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import psycopg
from psycopg import conninfo
from psycopg_pool import PoolTimeout

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.limits import IDLE_IN_TRANSACTION_SECONDS, LOCK_SECONDS, STATEMENT_SECONDS, TRANSACTION_TRIES
from seapost.database.pool import AsyncPool, RoleTimeouts, open_pool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from psycopg import AsyncConnection

ResultT = TypeVar("ResultT")

REPEATED_SQLSTATES: Final = frozenset({"40001", "40P01", "55P03"})
"""Serialization failure, deadlock, lock timeout: nothing was written, so the whole transaction may run again."""
BUSY_SQLSTATES: Final = frozenset({"57014", "53300", "53400"})
"""Statement timeout and exhausted limits: nothing was written; the caller may try again later."""
CONNECTION_SECONDS: Final = 5.0
"""Longest wait for a free connection."""
PAUSE_SECONDS: Final = 0.05
"""Longest pause before the first repetition; it doubles."""
_TIMEOUTS: Final = RoleTimeouts(STATEMENT_SECONDS, LOCK_SECONDS, IDLE_IN_TRANSACTION_SECONDS)
_ISOLATION: Final = r"-c default_transaction_isolation=read\ committed"


class Database:
    """Connections of one part of Orbit to one database; `async with` opens and closes them.

    Every connection is in autocommit mode: one statement is one transaction at READ COMMITTED, whatever the database's
    own default is (JRN-15).
    """

    def __init__(self, dsn: str, *, part: str = "server", size_max: int = 8, role: str | None = None) -> None:
        """Describe the connections.

        Args:
            dsn: of a direct connection or a pooler in session mode; its own options win.
            part: the sessions are called `orbit-<part>` in pg_stat_activity (OPS-03, MIG-08).
            size_max: connections at most.
            role: role that every session takes on, when the login role is only a member of it.
        """
        self._dsn = dsn
        self._part = part
        self._size_max = size_max
        self._role = role
        self._pool: AsyncPool | None = None

    async def __aenter__(self) -> Self:
        pool = open_pool(
            _read_committed(self._dsn),
            part=self._part,
            program="orbit",
            size_max=self._size_max,
            role_timeouts=_TIMEOUTS,
            role=self._role,
            wait_seconds=CONNECTION_SECONDS,
            autocommit=True,
        )
        self._pool = await pool.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            await self._pool.__aexit__(kind, error, trace)
            self._pool = None

    async def run(self, work: Callable[[AsyncConnection[Any]], Awaitable[ResultT]]) -> ResultT:
        """Run `work` on a connection; a transaction that lost a race is repeated whole, three times in all (LCK-11).

        `work` is one call of one function, or more inside `connection.transaction()`; it has no effect outside the
        database, since it may run more than once.

        Raises:
            OrbitError: the code that a function raised; `SERVICE_BUSY` when every repetition lost, the statement took
                too long or no connection became free; `SERVICE_NOT_READY` when the database cannot be reached. With
                `SERVICE_NOT_READY` the transaction may have been committed.
        """
        if self._pool is None:
            raise RuntimeError("The database is used outside its `async with`.")
        for attempt in range(1, TRANSACTION_TRIES + 1):
            try:
                async with self._pool.connection() as connection:
                    return await work(connection)
            except PoolTimeout as error:
                raise self._no_connection() from error
            except psycopg.Error as error:
                if error.sqlstate not in REPEATED_SQLSTATES:
                    refused = _refused(error)
                    if refused is None:
                        raise
                    raise refused from error
                if attempt == TRANSACTION_TRIES:
                    raise OrbitError(ErrorCode.SERVICE_BUSY, "others hold what the request needs; try again") from error
            await asyncio.sleep(random.uniform(0, PAUSE_SECONDS * 2 ** (attempt - 1)))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _no_connection(self) -> OrbitError:
        """Busy when every connection is in use, not ready when there is none."""
        if self._pool is not None and self._pool.get_stats().get("pool_size", 0) >= self._size_max:
            return OrbitError(ErrorCode.SERVICE_BUSY, "no database connection became free; try again")
        return OrbitError(ErrorCode.SERVICE_NOT_READY, "the database cannot be reached")


def _read_committed(dsn: str) -> str:
    """Set the isolation level before the options that `dsn` has itself, which win."""
    options = conninfo.conninfo_to_dict(dsn).get("options") or ""
    return conninfo.make_conninfo(dsn, options=f"{_ISOLATION} {options}".strip())


def _refused(error: psycopg.Error) -> OrbitError | None:
    """The answer to an error of the database that is no defect of ours, or None."""
    if error.sqlstate in BUSY_SQLSTATES:
        return OrbitError(ErrorCode.SERVICE_BUSY, "the database took too long; try again")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return OrbitError(ErrorCode.SERVICE_NOT_READY, "the database cannot be reached")
    return None
