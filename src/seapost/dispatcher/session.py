"""A turn with the database: a connection for one call, and which errors mean "again" (F18, F81).

Authority: SQLSTATE decides, never message text.
States: none; a connection is held for one function call and given back before anybody waits.
Failures: `is_transient` tells what passes by itself (lost connections, deadlocks, time limits, a server that starts
or stops) from what does not. A server that no longer answers is hung up on before its calls are cancelled: psycopg
would first ask it to cancel each statement and wait ten seconds for that (F16).
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg_pool import AsyncConnectionPool

Pool = AsyncConnectionPool[Any]
Connection = psycopg.AsyncConnection[Any]

BACKOFF_BASE_SECONDS: Final = 0.05
BACKOFF_MAX_SECONDS: Final = 5.0
BACKOFF_MIN_SECONDS: Final = 0.01
HANG_UP_SECONDS: Final = 0.01

_TRANSIENT: Final = frozenset(
    {
        "40001",  # serialization failure
        "40P01",  # deadlock
        "55P03",  # lock timeout
        "57014",  # statement timeout
        "25006",  # read-only: the server was demoted, and the next connection finds its successor
    }
)
_TRANSIENT_CLASSES: Final = ("08", "53", "57P")


@asynccontextmanager
async def session(pool: Pool, seconds_max: float, in_use: set[Connection]) -> AsyncGenerator[Connection]:
    """One connection in autocommit mode, so that each call is a transaction of its own and one round trip.

    It stands in `in_use` meanwhile.
    """
    async with asyncio.timeout(seconds_max), pool.connection() as connection:
        in_use.add(connection)
        try:
            if not connection.autocommit:
                await connection.set_autocommit(True)
            yield connection
        finally:
            in_use.discard(connection)


async def hang_up(in_use: set[Connection], patience_seconds: float) -> None:
    """Let calls under way end, for `patience_seconds`; then cut what is left, so that they fail at once."""
    for _ in range(round(patience_seconds / HANG_UP_SECONDS)):
        if not in_use:
            return
        await asyncio.sleep(HANG_UP_SECONDS)
    for connection in list(in_use):
        _cut(connection)
    await asyncio.sleep(HANG_UP_SECONDS)  # the loop tells the waiting calls


def _cut(connection: Connection) -> None:
    """Shut the socket down through a duplicate; the connection itself stays psycopg's to close."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=socket.dup(connection.pgconn.socket)) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed a little later."""
    if isinstance(error, psycopg.Error):
        code = error.sqlstate
        if code is None:
            return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return code in _TRANSIENT or code.startswith(_TRANSIENT_CLASSES)
    return isinstance(error, TimeoutError | OSError)


def backoff_seconds(failures: int, rng: random.Random) -> float:
    """Full jitter for the own database: processes that lost it together must not come back together."""
    ceiling = min(BACKOFF_MAX_SECONDS, BACKOFF_BASE_SECONDS * 2.0 ** min(max(failures, 1) - 1, 30))
    return max(BACKOFF_MIN_SECONDS, rng.uniform(0.0, ceiling))
