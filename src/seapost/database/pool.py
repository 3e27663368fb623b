"""Connections and pools: named, limited in time, in UTC, and without a password in sight.

A pool is made closed and opens when it is entered, in the process that uses it: a server that loads the
application first and forks later never shares a connection between processes (F79). Using a pool in
another process than the one that opened it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypedDict

import psycopg
from psycopg import AsyncConnection, Connection, conninfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from seapost.model.errors import InvalidSetting, SeapostError, UnsupportedDatabase

NETWORK_LIMITS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "connect_timeout": 10,  # seconds
        "keepalives": 1,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,  # milliseconds
    }
)
TIMEOUT_SECONDS_MAX: Final = 86_400
PREPARE_THRESHOLD: Final = 5
RECONNECT_SECONDS: Final = 5.0
"""A round of attempts to connect, about 1 and then 2 seconds apart; the next round follows for as long as it takes."""
SECRET_PARAMETERS: Final = frozenset({"password", "sslpassword", "passfile", "oauth_client_secret", "scram_client_key"})
PART_BYTES_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class RoleTimeouts:
    """Time limits of every session, in seconds; 0 switches a limit off."""

    statement_seconds: float = 30.0
    lock_seconds: float = 5.0
    idle_in_transaction_seconds: float = 30.0

    def __post_init__(self) -> None:
        for value in (self.statement_seconds, self.lock_seconds, self.idle_in_transaction_seconds):
            if not 0 <= value <= TIMEOUT_SECONDS_MAX:
                raise InvalidSetting(f"A time limit of a session is 0 to {TIMEOUT_SECONDS_MAX} seconds, not {value}.")


DEFAULT_TIMEOUTS: Final = RoleTimeouts()
NO_TIMEOUTS: Final = RoleTimeouts(0, 0, 0)

CONFIGURE_SESSION: Final = """
select set_config('TimeZone', 'UTC', false),
       set_config('jit', 'off', false),
       set_config('statement_timeout', %s, false),
       set_config('lock_timeout', %s, false),
       set_config('idle_in_transaction_session_timeout', %s, false)"""
SET_ROLE: Final = "select set_config('role', %s, false)"


def part_dsn(dsn: str, part: str, *, program: str = "seapost") -> str:
    """The connection string of one part of a program, Seapost by default (dispatcher, listener, inbox …).

    The part is seen in pg_stat_activity as `<program>-<part>`. A peer that vanished without a word is noticed
    within about half a minute; limits that `dsn` sets itself win.

    Raises:
        InvalidSetting: `dsn` cannot be read (it is not quoted), or `part` is no short printable name.
    """
    if not part or len(part.encode()) > PART_BYTES_MAX or not part.isprintable():
        raise InvalidSetting(f"The name of a connection has 1 to {PART_BYTES_MAX} printable bytes, not {part!r}.")
    own = conninfo.conninfo_to_dict(check_dsn(dsn))
    merged = {**NETWORK_LIMITS, **own, "application_name": f"{program}-{part}"}
    return conninfo.make_conninfo("", **merged)


def redact_dsn(dsn: str) -> str:
    """The connection string without its secrets, for logs and messages; never the input itself."""
    try:
        parameters = conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        return "(unreadable connection string)"
    shown = {name: value for name, value in parameters.items() if name not in SECRET_PARAMETERS}
    return conninfo.make_conninfo("", **shown)


def check_dsn(dsn: str) -> str:
    """Return `dsn` when libpq can read it; raise InvalidSetting, without quoting it, when not."""
    try:
        conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        raise InvalidSetting(
            "The connection string cannot be read; write postgresql://user@host:port/database or name=value pairs."
        ) from None
    return dsn


def refuse_pooler(startup_process_id: int, actual_process_id: int) -> None:
    """Raise UnsupportedDatabase when a pooler stands between: it invents the process id at connect (F84)."""
    if startup_process_id != actual_process_id:
        raise UnsupportedDatabase(
            "This connection goes through a connection pooler; session locks and LISTEN need a direct connection. "
            "Name the server itself in the connection string."
        )


def refuse_role(role: str | None) -> None:
    """Raise InvalidSetting when a session behind a pooler shall take on a role: the next transaction has another."""
    if role is not None:
        raise InvalidSetting(
            f"The role {role} cannot be taken on behind a connection pooler; log in as a member of it, "
            f"or make it the login role's own: alter role … set role = {role}."
        )


def _milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def _configuration(timeouts: RoleTimeouts) -> tuple[str, str, str]:
    return (
        _milliseconds(timeouts.statement_seconds),
        _milliseconds(timeouts.lock_seconds),
        _milliseconds(timeouts.idle_in_transaction_seconds),
    )


def configure_session(connection: Connection, timeouts: RoleTimeouts, *, role: str | None = None) -> None:
    """Set UTC, the time limits and the role on a session; leaves no transaction open.

    JIT is off: every statement is one call of a few milliseconds, and compiling it would cost more than running it.
    """
    connection.execute(CONFIGURE_SESSION, _configuration(timeouts))
    if role is not None:
        connection.execute(SET_ROLE, (role,))
    if not connection.autocommit:
        connection.commit()


async def configure_session_async(
    connection: AsyncConnection, timeouts: RoleTimeouts, *, role: str | None = None
) -> None:
    """Asynchronous twin of `configure_session`."""
    await connection.execute(CONFIGURE_SESSION, _configuration(timeouts))
    if role is not None:
        await connection.execute(SET_ROLE, (role,))
    if not connection.autocommit:
        await connection.commit()


def _refuse_fork(opened_by: int | None) -> None:
    if opened_by is not None and opened_by != os.getpid():
        raise SeapostError("This connection pool was opened by another process; open it after the fork.")


class AsyncPool(AsyncConnectionPool[AsyncConnection]):
    """An asynchronous pool that refuses to be used after a fork."""

    _opened_by: int | None = None

    async def open(self, wait: bool = False, timeout: float = 30.0) -> None:  # noqa: ASYNC109, FBT001, FBT002 - psycopg's
        """Open the pool in this process."""
        self._opened_by = os.getpid()
        await super().open(wait=wait, timeout=timeout)

    async def getconn(self, timeout: float | None = None) -> AsyncConnection:  # noqa: ASYNC109 - psycopg's signature
        """Take a connection, in the process that opened the pool."""
        _refuse_fork(self._opened_by)
        return await super().getconn(timeout)


class SyncPool(ConnectionPool[Connection]):
    """A synchronous pool that refuses to be used after a fork."""

    _opened_by: int | None = None

    def open(self, wait: bool = False, timeout: float = 30.0) -> None:  # noqa: FBT001, FBT002 - psycopg's signature
        """Open the pool in this process."""
        self._opened_by = os.getpid()
        super().open(wait=wait, timeout=timeout)

    def getconn(self, timeout: float | None = None) -> Connection:
        """Take a connection, in the process that opened the pool."""
        _refuse_fork(self._opened_by)
        return super().getconn(timeout)


class _PoolArguments(TypedDict):
    conninfo: str
    kwargs: dict[str, object]
    name: str
    min_size: int
    max_size: int
    timeout: float
    reconnect_timeout: float
    open: bool


def _pool_arguments(
    dsn: str,
    part: str,
    size_min: int,
    size_max: int,
    wait_seconds: float,
    *,
    behind_pooler: bool,
    role: str | None,
    program: str = "seapost",
    autocommit: bool = False,
) -> _PoolArguments:
    if behind_pooler:
        refuse_role(role)
    if not 0 <= size_min <= size_max or size_max < 1:
        raise InvalidSetting(f"A pool holds 0 <= min <= max connections, not {size_min} and {size_max}.")
    return _PoolArguments(
        conninfo=part_dsn(dsn, part, program=program),
        kwargs={"prepare_threshold": None if behind_pooler else PREPARE_THRESHOLD, "autocommit": autocommit},
        name=f"{program}-{part}",
        min_size=size_min,
        max_size=size_max,
        timeout=wait_seconds,
        reconnect_timeout=RECONNECT_SECONDS,
        open=False,
    )


def open_pool(
    dsn: str,
    *,
    part: str,
    size_min: int = 1,
    size_max: int = 4,
    role_timeouts: RoleTimeouts = DEFAULT_TIMEOUTS,
    role: str | None = None,
    behind_pooler: bool = False,
    wait_seconds: float = 30.0,
    program: str = "seapost",
    autocommit: bool = False,
) -> AsyncPool:
    """Describe an asynchronous pool; `async with` opens it, in the process and loop that use it.

    Args:
        part: what the connections are for; they are called `<program>-<part>` in pg_stat_activity.
        role: role that every session takes on, when the login role is only a member of it.
        role_timeouts: limits of every session. Behind a pooler they are those of the login role
            (`alter role … set …`), because a pooled session is not ours to configure.
        behind_pooler: a transaction-mode pooler stands between: nothing is prepared, no session state, no role.
        wait_seconds: longest wait for a free connection, then `psycopg_pool.PoolTimeout`.
        program: what the part belongs to: the sessions' names begin with it.
        autocommit: each statement is a transaction of its own.

    A refused connection is tried again with a jittered delay that grows to about 2 seconds and no further: after a
    long outage nobody waits much longer than the server did (F79).
    """
    arguments = _pool_arguments(
        dsn,
        part,
        size_min,
        size_max,
        wait_seconds,
        behind_pooler=behind_pooler,
        role=role,
        program=program,
        autocommit=autocommit,
    )

    async def configure(connection: AsyncConnection) -> None:
        await configure_session_async(connection, role_timeouts, role=role)

    async def try_again(pool: AsyncConnectionPool[AsyncConnection]) -> None:
        if not pool.get_stats().get("pool_available"):
            await pool.check()  # who waits for a connection already would not ask for another attempt

    return AsyncPool(
        connection_class=AsyncConnection,
        reconnect_failed=try_again,
        configure=None if behind_pooler else configure,
        **arguments,
    )


def open_sync_pool(
    dsn: str,
    *,
    part: str,
    size_min: int = 1,
    size_max: int = 4,
    role_timeouts: RoleTimeouts = DEFAULT_TIMEOUTS,
    role: str | None = None,
    behind_pooler: bool = False,
    wait_seconds: float = 30.0,
) -> SyncPool:
    """Synchronous twin of `open_pool`; `with` opens it."""
    arguments = _pool_arguments(dsn, part, size_min, size_max, wait_seconds, behind_pooler=behind_pooler, role=role)

    def configure(connection: Connection) -> None:
        configure_session(connection, role_timeouts, role=role)

    configured: Callable[[Connection], None] | None = None if behind_pooler else configure

    def try_again(pool: ConnectionPool[Connection]) -> None:
        if not pool.get_stats().get("pool_available"):
            pool.check()

    return SyncPool(connection_class=Connection, reconnect_failed=try_again, configure=configured, **arguments)
