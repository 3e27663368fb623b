"""Connections for commands: one per command, named `orbit-cli`, never `orbit-server` (MIG-08)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeVar

from psycopg import AsyncConnection

from orbit.cli.options import dsn_of
from orbit.model.limits import IDLE_IN_TRANSACTION_SECONDS, LOCK_SECONDS, STATEMENT_SECONDS
from orbit.store.database import Database
from seapost.database.pool import RoleTimeouts, configure_session_async, part_dsn

Session = AsyncConnection[Any]
ResultT = TypeVar("ResultT")

PART: Final = "cli"
LOOK_SECONDS: Final = 3.0
"""A command that only looks gives up sooner than any work does (F83)."""

_ACTING: Final = RoleTimeouts(STATEMENT_SECONDS, LOCK_SECONDS, IDLE_IN_TRANSACTION_SECONDS)
_LOOKING: Final = RoleTimeouts(LOOK_SECONDS, LOOK_SECONDS, LOOK_SECONDS)


def command_dsn(dsn: str | None) -> str:
    """The connection string of a command: that of a flag or the environment, with the command's name."""
    return part_dsn(dsn_of(dsn), PART, program="orbit")


@asynccontextmanager
async def _session(dsn: str | None, timeouts: RoleTimeouts) -> AsyncGenerator[Session]:
    async with await AsyncConnection.connect(command_dsn(dsn), autocommit=True) as connection:
        await configure_session_async(connection, timeouts)
        yield connection


def looking(dsn: str | None) -> AbstractAsyncContextManager[Session]:
    """A session for a command that only looks."""
    return _session(dsn, _LOOKING)


def acting(dsn: str | None) -> AbstractAsyncContextManager[Session]:
    """A session for a command that changes something; the limits are those of the server (LCK-11)."""
    return _session(dsn, _ACTING)


async def changed(dsn: str | None, change: Callable[[Database], Awaitable[ResultT]]) -> ResultT:
    """What a change of an operator returned; a transaction that lost a race is repeated (LCK-11)."""
    async with Database(dsn_of(dsn), part=PART, size_max=1) as database:
        return await change(database)
