"""The raw limit: one table, one index, update and delete; no facts, no receipts, no fence, nobody checks anything."""

from __future__ import annotations

import time
from typing import Any, Final

import psycopg
from typing_extensions import override

from benchmarks.events import Measured, prepare
from benchmarks.systems.system import Drained, Handler, System
from seapost.store.arrays import ByteaArray, Int8Array, UuidArray

POLL_SECONDS: Final = 0.001

CREATE: Final = (
    "create table raw_append (id uuid primary key, body bytea not null)",
    (
        "create table raw_job (id bigint generated always as identity primary key, state int not null default 0,"
        " body bytea not null)"
    ),
    "create index on raw_job (state, id)",
)
CLAIM: Final = (
    "update raw_job set state = 1 where id = any(array(select id from raw_job where state = 0 order by id"
    " limit %s for update skip locked)) returning id, body"
)


class Raw(System):
    """Args: batch: rows per claim."""

    def __init__(self, batch: str = "100") -> None:
        self._batch = int(batch)
        self._handler = Handler()
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self.settings = f"plain SQL, binary parameters, batch {batch}"

    @override
    def versions(self) -> dict[str, str]:
        return {"psycopg": psycopg.__version__}

    @property
    def process_id(self) -> int:
        """The server's process behind this connection."""
        return self._session.info.backend_pid

    @property
    def _session(self) -> psycopg.AsyncConnection[Any]:
        assert self._connection is not None  # noqa: S101 - `setup` comes first
        return self._connection

    @override
    async def setup(self, dsn: str, *, install: bool) -> None:
        self._connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
        if install:
            for statement in CREATE:
                _ = await self._connection.execute(statement)

    @override
    async def append(self, count: int, batch: int) -> float:
        events = prepare(Measured, 0, count)
        started = time.monotonic()
        for start in range(0, count, batch):
            part = events[start : start + batch]
            ids, bodies = UuidArray(one.event_id for one in part), ByteaArray(one.envelope for one in part)
            async with self._session.transaction():  # as an append to an outbox, which is never alone in it
                _ = await self._session.execute(
                    "insert into raw_append select * from unnest(%b::uuid[], %b::bytea[])", (ids, bodies)
                )
        seconds = time.monotonic() - started
        _ = await self._session.execute("insert into raw_job (body) select body from raw_append order by id")
        _ = await self._session.execute("truncate raw_append")
        return seconds

    @override
    async def drain(self, count: int, *, shared: bool) -> Drained:
        self._handler.reset()
        idle_until = time.monotonic() + 1.0
        while shared or self._handler.handled < count:
            if await self._round():
                idle_until = time.monotonic() + 1.0
            elif time.monotonic() > idle_until:
                break
        return Drained(self._handler.handled, self._handler.first, self._handler.last)

    async def _round(self) -> int:
        cursor = await self._session.execute(CLAIM, (self._batch,), binary=True)
        rows = await cursor.fetchall()
        if rows:
            for _, body in rows:
                self._handler.value({"number": len(body)})
            _ = await self._session.execute(
                "delete from raw_job where id = any(%b)", (Int8Array(row[0] for row in rows),)
            )
            self._handler.last = time.monotonic()
        return len(rows)

    @override
    async def latency(self, count: int, per_second: float) -> list[float]:
        message = "the raw limit has nobody to wake"
        raise NotImplementedError(message)

    @override
    async def clear(self) -> None:
        _ = await self._session.execute("truncate raw_job")

    @override
    async def close(self) -> None:
        await self._session.close()
