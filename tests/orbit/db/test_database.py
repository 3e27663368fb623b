"""The pool of a part of Orbit: its sessions, and which errors it repeats, translates or lets through (LCK-11)."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.limits import TRANSACTION_TRIES
from orbit.store import database as module
from orbit.store.calls import call
from orbit.store.database import Database
from seapost.testing.databases import TestDatabase

SETTINGS = (
    "select current_setting('application_name'), current_setting('lock_timeout'), current_setting('statement_timeout'),"
    " current_setting('idle_in_transaction_session_timeout'), current_setting('transaction_isolation'),"
    " current_setting('TimeZone'), current_user::text"
)


class Failing:
    """Work that fails with one SQLSTATE as often as it is told, and then succeeds; counts how often it ran."""

    def __init__(self, sqlstate: str, times: int) -> None:
        self._sqlstate = sqlstate
        self._times = times
        self.ran = 0

    async def __call__(self, connection: AsyncConnection[Any]) -> int:
        """Fail in the database, not beside it."""
        self.ran += 1
        if self.ran <= self._times:
            block = f"do $$ begin raise exception using errcode = '{self._sqlstate}', message = 'lost'; end $$"
            _ = await connection.execute(block.encode())
        return self.ran


async def _ask(database: Database) -> tuple[Any, ...]:
    async def ask(connection: AsyncConnection[Any]) -> tuple[Any, ...]:
        ((*row,),) = await call(connection, SETTINGS)
        return tuple(row)

    return await database.run(ask)


@pytest.mark.req("orbit:LCK-11", "orbit:OPS-03", "orbit:MIG-08")
async def test_sessions_are_named_limited_in_time_and_in_the_role(orbit_database: TestDatabase) -> None:
    """5 s for a lock, 15 s for a statement, 30 s idle in a transaction; the name is what the migrator looks for."""
    async with Database(orbit_database.dsn, role="orbit_server") as database:
        assert await _ask(database) == ("orbit-server", "5s", "15s", "30s", "read committed", "UTC", "orbit_server")
    async with Database(orbit_database.dsn, part="cli") as database:
        assert (await _ask(database))[0] == "orbit-cli"


@pytest.mark.req("orbit:JRN-15")
async def test_sessions_are_at_read_committed_whatever_the_database_prefers(orbit_database: TestDatabase) -> None:
    """A database whose default is another level would have every confirmation refused."""
    with orbit_database.connect(autocommit=True) as connection:
        setting = f"alter database {orbit_database.name} set default_transaction_isolation = 'serializable'"
        connection.execute(setting.encode())
    async with Database(orbit_database.dsn) as database:
        assert (await _ask(database))[4] == "read committed"


@pytest.mark.req("orbit:LCK-11")
@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03"])
async def test_a_transaction_that_lost_a_race_is_repeated_whole(orbit_database: TestDatabase, sqlstate: str) -> None:
    """Twice more at most; the third loss is the caller's to try again."""
    async with Database(orbit_database.dsn) as database:
        assert await database.run(Failing(sqlstate, TRANSACTION_TRIES - 1)) == TRANSACTION_TRIES
        lost = Failing(sqlstate, TRANSACTION_TRIES)
        with pytest.raises(OrbitError) as caught:
            await database.run(lost)
        assert (caught.value.code, lost.ran) == (ErrorCode.SERVICE_BUSY, TRANSACTION_TRIES)


@pytest.mark.req("orbit:LCK-11")
async def test_nothing_else_is_repeated(orbit_database: TestDatabase) -> None:
    """A defect stays what it is and runs once; a statement that took too long is busy, and runs once too."""
    async with Database(orbit_database.dsn) as database:
        defect, slow = Failing("22012", 1), Failing("57014", 1)
        with pytest.raises(psycopg.errors.DivisionByZero):
            await database.run(defect)
        with pytest.raises(OrbitError) as caught:
            await database.run(slow)
        assert (caught.value.code, defect.ran, slow.ran) == (ErrorCode.SERVICE_BUSY, 1, 1)


@pytest.mark.req("orbit:LCK-11")
async def test_a_refusal_of_a_function_keeps_its_sentence_and_its_members(orbit_database: TestDatabase) -> None:
    """SQLSTATE becomes the code, the message the detail, and the JSON of DETAIL the extension members."""

    async def refuse(connection: AsyncConnection[Any]) -> None:
        _ = await call(
            connection,
            "do $$ begin raise exception using errcode = 'OB014', message = 'it has revision 3',"
            " detail = '{\"current_revision\":3}'; end $$",
        )

    async with Database(orbit_database.dsn) as database:
        with pytest.raises(OrbitError) as caught:
            await database.run(refuse)
    assert (caught.value.code, caught.value.detail) == (ErrorCode.REVISION_CONFLICT, "it has revision 3")
    assert caught.value.extensions == {"current_revision": 3}


@pytest.mark.req("orbit:LCK-11", "orbit:OPS-05")
async def test_a_pool_without_a_free_connection_is_busy_and_one_without_a_server_not_ready(
    orbit_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for others is told to try again; who has nobody to wait for, that the service is not ready."""
    monkeypatch.setattr(module, "CONNECTION_SECONDS", 0.2)

    async with Database(orbit_database.dsn, size_max=1) as database:

        async def hold(connection: AsyncConnection[Any]) -> ErrorCode:
            _ = await connection.execute("select 1")
            with pytest.raises(OrbitError) as caught:
                await _ask(database)
            return caught.value.code

        assert await database.run(hold) is ErrorCode.SERVICE_BUSY
    nowhere = make_conninfo(orbit_database.dsn, host="127.0.0.1", port=1)
    async with Database(nowhere) as database:
        with pytest.raises(OrbitError) as caught:
            await _ask(database)
    assert caught.value.code is ErrorCode.SERVICE_NOT_READY


@pytest.mark.req("orbit:LCK-11")
async def test_a_connection_that_dies_under_a_call_is_not_repeated(orbit_database: TestDatabase) -> None:
    """It may have been committed, so the caller decides; the next call has a fresh connection."""
    ran = 0

    async def die(connection: AsyncConnection[Any]) -> None:
        nonlocal ran
        ran += 1
        _ = await connection.execute("select pg_terminate_backend(pg_backend_pid())")

    async with Database(orbit_database.dsn) as database:
        with pytest.raises(OrbitError) as caught:
            await database.run(die)
        assert (caught.value.code, ran) == (ErrorCode.SERVICE_NOT_READY, 1)
        assert (await _ask(database))[0] == "orbit-server"


async def test_a_database_is_used_inside_its_block_only(orbit_database: TestDatabase) -> None:
    """Before and after, the use is a defect and is named."""
    database = Database(orbit_database.dsn)
    with pytest.raises(RuntimeError, match="async with"):
        await _ask(database)
