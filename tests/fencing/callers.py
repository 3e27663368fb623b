"""One caller per driver: the same call, as a program with that library would make it; each call commits by itself."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any, Final, LiteralString, cast
from uuid import UUID

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from seapost.model.delivery import Claim
from seapost.store import delivery
from tests.fencing.calls import LONG, Call, Rows, Verb, call_of
from tests.kit import builders
from tests.kit.drivers.urls import url_of

library = cast("Any", asyncpg)
"""asyncpg has no types."""


class Caller(ABC):
    """Makes calls over one connection in autocommit mode."""

    def say(self, verb: Verb, destination: str, claims: Sequence[Claim]) -> Rows:
        """Say this of these claims; the rows of the answer."""
        return self.call(call_of(verb, destination, claims))

    @abstractmethod
    def call(self, call: Call) -> Rows:
        """Make a call and return its rows."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


class PsycopgCaller(Caller):
    """psycopg, synchronous."""

    def __init__(self, dsn: str) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True)

    def call(self, call: Call) -> Rows:
        """Parameters in whatever format the driver chooses."""
        text = cast("LiteralString", call.text(lambda _: "%s"))
        return self.connection.execute(text, call.values).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class TextCaller(PsycopgCaller):
    """One string over the simple protocol, every value a literal in it: what a person types into psql."""

    def call(self, call: Call) -> Rows:
        """Ids come back as text."""
        values = [_literal(value) for value in call.values]
        result = self.connection.pgconn.exec_(call.text(lambda number: values[number]).encode())
        if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            raise AssertionError(result.error_message.decode())
        rows = [
            [(result.get_value(row, column) or b"").decode() for column in range(result.nfields)]
            for row in range(result.ntuples)
        ]
        return [(UUID(row[0]), *(int(cell) for cell in row[1:2]), *row[2:]) for row in rows]


class AsyncCaller(Caller):
    """Owns the event loop that an asynchronous driver needs."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()

    @abstractmethod
    async def end(self) -> None:
        """Close the connection."""

    def close(self) -> None:
        """Close the connection and its loop."""
        self.runner.run(self.end())
        self.runner.close()


class PsycopgAsyncCaller(AsyncCaller):
    """psycopg, asynchronous, rows in binary form."""

    def __init__(self, dsn: str) -> None:
        super().__init__()
        self.connection = self.runner.run(psycopg.AsyncConnection.connect(dsn, autocommit=True))

    def call(self, call: Call) -> Rows:
        """Parameters in whatever format the driver chooses."""

        async def run() -> Rows:
            text = cast("LiteralString", call.text(lambda _: "%s"))
            return await (await self.connection.execute(text, call.values, binary=True)).fetchall()

        return self.runner.run(run())

    async def end(self) -> None:
        """Close the connection."""
        await self.connection.close()


class StoreCaller(PsycopgAsyncCaller):
    """The dispatcher's own calls, with its binary arrays."""

    def say(self, verb: Verb, destination: str, claims: Sequence[Claim]) -> Rows:
        """Refusals as rows; a renewal answers with events alone."""
        return self.runner.run(_say(self.connection, verb, destination, claims))


class AsyncpgCaller(AsyncCaller):
    """asyncpg: everything binary, every statement prepared."""

    def __init__(self, dsn: str) -> None:
        super().__init__()
        self.connection: Any = self.runner.run(library.connect(url_of(dsn)))

    def call(self, call: Call) -> Rows:
        """Numbered parameters."""

        async def run() -> Rows:
            rows = await self.connection.fetch(call.text(lambda number: f"${number + 1}"), *call.values)
            return [tuple(row) for row in rows]

        return self.runner.run(run())

    async def end(self) -> None:
        """Close the connection."""
        await self.connection.close()


class SqlalchemyCaller(Caller):
    """SQLAlchemy over psycopg."""

    def __init__(self, dsn: str) -> None:
        engine = sqlalchemy.create_engine(_engine_url(dsn, "psycopg"), isolation_level="AUTOCOMMIT")
        self.engine = engine
        self.connection = engine.connect()

    def call(self, call: Call) -> Rows:
        """Named parameters."""
        return [tuple(row) for row in self.connection.execute(sqlalchemy.text(_named(call)), _parameters(call))]

    def close(self) -> None:
        """Close the connection and its engine."""
        self.connection.close()
        self.engine.dispose()


class SqlalchemyAsyncCaller(AsyncCaller):
    """SQLAlchemy over asyncpg."""

    def __init__(self, dsn: str) -> None:
        super().__init__()
        self.engine = create_async_engine(_engine_url(dsn, "asyncpg"), isolation_level="AUTOCOMMIT")

        async def open_connection() -> Any:  # noqa: ANN401 - SQLAlchemy's own
            return await self.engine.connect()

        self.connection = self.runner.run(open_connection())

    def call(self, call: Call) -> Rows:
        """Named parameters."""

        async def run() -> Rows:
            result = await self.connection.execute(sqlalchemy.text(_named(call)), _parameters(call))
            return [tuple(row) for row in result]

        return self.runner.run(run())

    async def end(self) -> None:
        """Close the connection and its engine."""
        await self.connection.close()
        await self.engine.dispose()


CALLERS: Final[dict[str, Callable[[str], Caller]]] = {
    "psycopg": PsycopgCaller,
    "psycopg async": PsycopgAsyncCaller,
    "store": StoreCaller,
    "asyncpg": AsyncpgCaller,
    "sqlalchemy psycopg": SqlalchemyCaller,
    "sqlalchemy asyncpg": SqlalchemyAsyncCaller,
    "plain SQL": TextCaller,
}


@contextmanager
def open_callers(dsn: str) -> Generator[dict[str, Caller]]:
    """One caller per driver on a database."""
    with ExitStack() as stack:
        callers: dict[str, Caller] = {}
        for name, make in CALLERS.items():
            callers[name] = make(dsn)
            stack.callback(callers[name].close)
        yield callers


async def _say(connection: psycopg.AsyncConnection[Any], verb: Verb, destination: str, claims: Sequence[Claim]) -> Rows:
    fences = [claim.fence for claim in claims]
    match verb:
        case Verb.ACKNOWLEDGE:
            refusals = await delivery.acknowledge(
                connection,
                destination=destination,
                receipt_type="ConsumerReceipt",
                receipt_schema_version="1",
                receipt_algorithm="jcs-sha256-v1",
                settlements=[
                    delivery.Settlement(
                        claim.fence,
                        claim.event_digest,
                        f"receipt-{claim.fence.event_id}",
                        builders.receipt_for(claim),
                    )
                    for claim in claims
                ],
            )
        case Verb.RETRY:
            seconds = LONG.total_seconds()
            postponements = [
                delivery.Postponement(fence, seconds, "timeout", "note", counted=True, lost=False) for fence in fences
            ]
            refusals = await delivery.retry(connection, destination=destination, postponements=postponements)
        case Verb.QUARANTINE:
            isolations = [delivery.Isolation(fence, "schema_invalid", "note") for fence in fences]
            refusals = await delivery.quarantine(connection, destination=destination, isolations=isolations)
        case Verb.RENEW:
            renewed = await delivery.renew(
                connection, destination=destination, fences=fences, lease_seconds=LONG.total_seconds()
            )
            return [(event_id,) for event_id in renewed]
    return [(refusal.event_id, refusal.attempt_id, refusal.result) for refusal in refusals]


def _engine_url(dsn: str, driver: str) -> str:
    return url_of(dsn).replace("postgresql://", f"postgresql+{driver}://", 1)


def _named(call: Call) -> str:
    return call.text(lambda number: f":p{number}")


def _parameters(call: Call) -> dict[str, Any]:
    return {f"p{number}": value for number, value in enumerate(call.values)}


def _literal(value: object) -> str:
    match value:
        case list():
            items = cast("list[object]", value)
            return f"array[{', '.join(map(_literal, items))}]"
        case bytes():
            return f"'\\x{value.hex()}'"
        case bool() | int():
            return str(value).lower()
        case timedelta():
            return f"'{value.total_seconds()} seconds'"
        case _:
            text = str(value)
            assert "'" not in text
            return f"'{text}'"
