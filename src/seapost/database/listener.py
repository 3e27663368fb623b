"""The listening connection: notifications in under two milliseconds, and the truth about being deaf (F72).

Authority: none. A notification is a hint; whoever waits also polls.
States: connecting → listening → (lost) → connecting …; `run` never ends by itself.
Failures: the server goes away (the socket says so); the network swallows the session without a word (a
probe every ten seconds is not answered in time). Either way the session is dropped, a new one is made after
a growing, jittered delay, and `on_connected` is called once it listens: what was sent in between is lost,
so the owner sweeps. Declarations of sleep are session locks and die with the session.

One connection carries notifications and queries. While it is idle, the event loop watches its socket and
takes notifications as they arrive; a query has the socket for itself, and notifications that arrive with
its answer go the same way. It is always in autocommit: a transaction would hold notifications back.
"""

from __future__ import annotations

import asyncio
import math
import random
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeVar

import psycopg
from psycopg import AsyncConnection, Notify, sql

from seapost.database.pool import (
    DEFAULT_TIMEOUTS,
    check_dsn,
    configure_session_async,
    part_dsn,
    redact_dsn,
    refuse_pooler,
)
from seapost.model.errors import InvalidSetting

CHANNEL: Final = "seapost"

ResultT = TypeVar("ResultT")
Declaration = Callable[[AsyncConnection, str], Awaitable[bool]]
"""A store function that declares or withdraws the sleep of a destination on the given connection."""


@dataclass(frozen=True, slots=True)
class ListenerTimes:
    """How often the session is probed and how it comes back, in seconds."""

    probe_every_seconds: float = 10.0
    probe_timeout_seconds: float = 5.0
    backoff_base_seconds: float = 0.1
    backoff_max_seconds: float = 5.0

    def __post_init__(self) -> None:
        if min(self.probe_every_seconds, self.probe_timeout_seconds, self.backoff_base_seconds) <= 0:
            raise InvalidSetting("The times of a listener are greater than 0.")
        if self.backoff_max_seconds < self.backoff_base_seconds:
            raise InvalidSetting("The longest delay of a listener is not shorter than its first.")

    def backoff_seconds(self, failures: int) -> float:
        """Full jitter: anything up to the doubled delay of this failure (1 is the first)."""
        ceiling = min(self.backoff_max_seconds, self.backoff_base_seconds * 2 ** min(failures - 1, 30))
        return random.uniform(0, ceiling)


DEFAULT_TIMES: Final = ListenerTimes()


class Listener:
    """Hears one channel on a session of its own.

    Args:
        dsn: a direct connection; behind a connection pooler nothing would be heard.
        on_notify: called in the event loop with each payload; must not block or raise.
        on_connected: called each time the session listens, the first time included: sweep then.
        declare, withdraw: store functions behind the methods of the same names.
        role: role that the session takes on.

    Run it as a task; `connected`, `age_seconds` and `connections` tell how it is.
    """

    def __init__(
        self,
        dsn: str,
        *,
        on_notify: Callable[[str], None],
        on_connected: Callable[[], None] | None = None,
        declare: Declaration | None = None,
        withdraw: Declaration | None = None,
        channel: str = CHANNEL,
        part: str = "listener",
        role: str | None = None,
        times: ListenerTimes = DEFAULT_TIMES,
    ) -> None:
        self._dsn = check_dsn(dsn)
        self._on_notify = on_notify
        self._on_connected = on_connected
        self._declare = declare
        self._withdraw = withdraw
        self._channel = channel
        self._part = part
        self._role = role
        self._times = times
        self._session: _Session | None = None
        self._heard_at = -math.inf
        self._connections = 0
        self._last_error: str | None = None

    def __repr__(self) -> str:
        return f"Listener({redact_dsn(self._dsn)!r}, channel={self._channel!r}, connected={self.connected})"

    @property
    def connected(self) -> bool:
        """Whether a session listens, as far as the last probe knows."""
        return self._session is not None

    @property
    def age_seconds(self) -> float:
        """Seconds since the server was last heard (notification, answer or probe); infinite before the first time."""
        return time.monotonic() - self._heard_at

    @property
    def connections(self) -> int:
        """How often a session was made; more than 1 means that it was lost."""
        return self._connections

    @property
    def last_error(self) -> str | None:
        """Why the session was last lost or refused, without secrets; None while all is well."""
        return self._last_error

    @property
    def process_id(self) -> int | None:
        """Server process of the session, None while there is none."""
        return None if self._session is None else self._session.process_id

    async def run(self) -> None:
        """Listen until cancelled.

        Raises:
            UnsupportedDatabase: a connection pooler stands between.
        """
        failures = 0
        while True:
            before = self._connections
            try:
                await self._listen()
            except (OSError, psycopg.Error, TimeoutError) as error:
                self._last_error = f"{type(error).__name__}: {error}".strip()
            failures = 1 if self._connections > before else failures + 1
            await asyncio.sleep(self._times.backoff_seconds(failures))

    async def declare(self, destination: str) -> bool:
        """Declare that a dispatcher of `destination` sleeps; False: not declared, so claim again.

        The declaration dies with the session; False while there is no session.
        """
        return await self._ask(self._declare, destination)

    async def withdraw(self, destination: str) -> bool:
        """Take back a declaration; False when the session holds none."""
        return await self._ask(self._withdraw, destination)

    async def _ask(self, question: Declaration | None, destination: str) -> bool:
        if question is None:
            raise InvalidSetting("This listener was made without declarations.")
        session = self._session
        if session is None:
            return False
        asking = asyncio.ensure_future(session.ask(lambda connection: question(connection, destination)))
        asking.add_done_callback(_hear_out)
        # Shielded: a caller that is cancelled must not cut the answer off and leave the session in doubt.
        try:
            return await asyncio.shield(asking)
        except (OSError, psycopg.OperationalError, TimeoutError):
            return False  # the session is lost; its keeper notices the same and makes a new one

    async def _listen(self) -> None:
        """One session: connect, listen, probe until it fails."""
        async with await AsyncConnection.connect(
            part_dsn(self._dsn, self._part), autocommit=True, prepare_threshold=None
        ) as connection:
            async with asyncio.timeout(self._times.probe_timeout_seconds):
                await self._open(connection)
            async with _watched(connection, self._hear, self._times.probe_timeout_seconds) as session:
                self._session = session
                self._connections += 1
                self._last_error = None
                self._heard()
                if self._on_connected is not None:
                    self._on_connected()
                try:
                    await self._probe(session)
                finally:
                    self._session = None

    async def _open(self, connection: AsyncConnection) -> None:
        row = await (await connection.execute("select pg_catalog.pg_backend_pid()")).fetchone()
        refuse_pooler(connection.info.backend_pid, -1 if row is None else int(row[0]))
        await configure_session_async(connection, DEFAULT_TIMEOUTS, role=self._role)
        await connection.execute(sql.SQL("listen {}").format(sql.Identifier(self._channel)))

    async def _probe(self, session: _Session) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._times.probe_every_seconds):
                    await session.lost.wait()
            if session.lost.is_set():
                raise psycopg.OperationalError("the listening session was closed by the server")
            await session.ask(lambda connection: connection.execute("select 1"))
            self._heard()

    def _hear(self, payload: str) -> None:
        self._heard()
        self._on_notify(payload)

    def _heard(self) -> None:
        self._heard_at = time.monotonic()


class _Session:
    """One connection shared by the loop, which watches its socket, and by queries, one at a time."""

    def __init__(self, connection: AsyncConnection, watched_socket: socket.socket, timeout_seconds: float) -> None:
        self.lost = asyncio.Event()
        self.process_id = connection.info.backend_pid
        self._connection = connection
        self._socket = watched_socket
        self._timeout_seconds = timeout_seconds
        self._turn = asyncio.Lock()
        self._loop = asyncio.get_running_loop()

    def watch(self) -> None:
        """Take what has arrived already, then let the loop report more."""
        self._take()
        if not self.lost.is_set():
            self._loop.add_reader(self._socket, self._take)

    def look_away(self) -> None:
        self._loop.remove_reader(self._socket)

    def end(self) -> None:
        """Take no more questions; one under way fails now, or closing the connection would wait for its answer."""
        if self._turn.locked():
            self._hang_up()
        self.look_away()
        self.lost.set()

    async def ask(self, question: Callable[[AsyncConnection], Awaitable[ResultT]]) -> ResultT:
        """Run a query with the socket to itself; a server that does not answer in time has lost the session."""
        async with self._turn:
            if self.lost.is_set():
                raise psycopg.OperationalError("the listening session is lost")
            self.look_away()
            overdue = self._loop.call_later(self._timeout_seconds, self._hang_up)
            try:
                return await question(self._connection)
            finally:
                overdue.cancel()
                if self._connection.closed or self.lost.is_set():
                    self.lost.set()
                else:
                    self.watch()

    def _take(self) -> None:
        """Read the socket without waiting and hand on the notifications through psycopg's handler."""
        pgconn = self._connection.pgconn
        try:
            pgconn.consume_input()
            while (notification := pgconn.notifies()) is not None:
                if pgconn.notify_handler is not None:
                    pgconn.notify_handler(notification)
        except psycopg.OperationalError:
            self._hang_up()

    def _hang_up(self) -> None:
        """Cut the socket, so that a waiting query fails now instead of waiting for a dead peer."""
        self.look_away()
        self.lost.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


@asynccontextmanager
async def _watched(
    connection: AsyncConnection, hear: Callable[[str], None], timeout_seconds: float
) -> AsyncGenerator[_Session]:
    """Watch the connection's socket through a duplicate of our own: psycopg registers and removes its own handle."""

    def handle(notification: Notify) -> None:
        hear(notification.payload)

    connection.add_notify_handler(handle)
    with socket.socket(fileno=_duplicate(connection)) as watched_socket:
        session = _Session(connection, watched_socket, timeout_seconds)
        session.watch()
        try:
            yield session
        finally:
            session.end()
            connection.remove_notify_handler(handle)


def _hear_out(asking: asyncio.Future[bool]) -> None:
    """Nobody may be left to hear why a question failed."""
    if not asking.cancelled():
        asking.exception()


def _duplicate(connection: AsyncConnection) -> int:
    return socket.dup(connection.pgconn.socket)  # the handle stays ours when psycopg closes its own
