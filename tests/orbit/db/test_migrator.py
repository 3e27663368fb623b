"""The migrator: versions, checksums, the dirty marker, and what it refuses to go on with (MIG-08, MIG-19 to MIG-21)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Final

import psycopg
import pytest

from orbit.store import migrations
from orbit.store.migrations import HistoryDiffers, HistoryDirty, MigrationState, StepFailed, WritersActive
from seapost.database.installer import SqlTree
from seapost.model.errors import InvalidSetting
from seapost.testing.databases import TestDatabase
from tests.kit.eventually import eventually_row
from tests.kit.orbit.schema_histories import NEWEST, HistoryUpTo
from tests.kit.sessions import SessionFactory, wait_until_blocked

MIGRATING: Final = "select pid from pg_stat_activity where application_name = 'seapost-migrate'"
BROKEN: Final = "create table orbit.half (a int);\nselect 1 / 0;\n"


def _states(database: TestDatabase, tree: SqlTree | None = None) -> dict[int, str]:
    """The state of each version, of the packaged files or of others."""
    found = migrations.status(database.dsn, tree=tree)
    return {one.version: str(one.state) for one in found}


@pytest.mark.req("orbit:MIG-19", "orbit:MIG-23", "orbit:T-M04")
def test_an_empty_database_gets_every_version_once(orbit_empty_database: TestDatabase) -> None:
    """One row per migration, with the digest of its file; a second run has nothing to do, and verify finds no fault."""
    database = orbit_empty_database
    assert set(_states(database).values()) == {"pending"}
    assert migrations.verify(database.dsn)
    assert migrations.up(database.dsn).number_after == NEWEST
    assert not migrations.up(database.dsn).changed
    assert migrations.verify(database.dsn) == []
    found = migrations.status(database.dsn)
    assert [one.version for one in found] == list(range(1, NEWEST + 1))
    assert {one.state for one in found} == {MigrationState.APPLIED}
    rows = (
        database.connect()
        .execute(
            "select version, checksum, dirty, applied_at >= started_at from orbit.schema_migrations order by version"
        )
        .fetchall()
    )
    files = {one.version: one.checksum for one in found}
    assert rows == [(version, files[version], False, True) for version in files]


@pytest.mark.req("orbit:MIG-19")
def test_the_checksum_is_that_of_the_file(orbit_database: TestDatabase, history_up_to: HistoryUpTo) -> None:
    """SHA-256 of the file, so that anybody can compare it with a tool of their own."""
    history = history_up_to(NEWEST)
    for one in migrations.status(orbit_database.dsn):
        assert one.checksum == sha256(history.file(one.version).read_bytes()).hexdigest()


@pytest.mark.req("orbit:MIG-20", "orbit:TX-20")
def test_a_failed_step_keeps_the_steps_before_it_and_is_marked(
    orbit_empty_database: TestDatabase, history_up_to: HistoryUpTo
) -> None:
    """DDL of the failed file is rolled back, its row stays dirty, and the versions before it stay applied."""
    database, history = orbit_empty_database, history_up_to(3)
    history.append(3, BROKEN)
    with pytest.raises(StepFailed, match="0003_queues failed: division by zero"):
        migrations.up(database.dsn, tree=history.tree)
    assert _states(database, history.tree) == {1: "applied", 2: "applied", 3: "dirty"}
    row = database.connect().execute("select to_regclass('orbit.half'), to_regclass('orbit.queues')").fetchone()
    assert row == (None, None)


@pytest.mark.req("orbit:MIG-20", "orbit:T-M04")
def test_a_dirty_history_is_refused_until_it_is_resolved(
    orbit_empty_database: TestDatabase, history_up_to: HistoryUpTo
) -> None:
    """`up` refuses with 4, whatever the file looks like by now; after `reverted` the step runs again from its start."""
    database, broken = orbit_empty_database, history_up_to(3)
    text = broken.file(3).read_text(encoding="utf-8")
    broken.append(3, BROKEN)
    with pytest.raises(StepFailed):
        migrations.up(database.dsn, tree=broken.tree)
    broken.file(3).write_text(text, encoding="utf-8")
    with pytest.raises(HistoryDirty, match="orbit migrate resolve --version 3") as caught:
        migrations.up(database.dsn, tree=broken.tree)
    assert caught.value.exit_code == 4
    assert "migration 0003_queues is dirty" in migrations.verify(database.dsn, tree=broken.tree)
    migrations.resolve(database.dsn, version=3, state="reverted", reason="looked: nothing is left", tree=broken.tree)
    assert migrations.up(database.dsn, tree=broken.tree).number_after == 3
    assert migrations.verify(database.dsn, tree=broken.tree) == []
    resolutions = (
        database.connect()
        .execute("select number, state, reason, actor = session_user from orbit.schema_resolution")
        .fetchall()
    )
    assert resolutions == [(3, "reverted", "looked: nothing is left", True)]


@pytest.mark.req("orbit:MIG-20")
def test_a_step_resolved_as_applied_is_not_run_again(
    orbit_empty_database: TestDatabase, history_up_to: HistoryUpTo
) -> None:
    """`applied` takes the operator's word: the marker ends, and the next version follows."""
    database, history = orbit_empty_database, history_up_to(4)
    migrations.up(database.dsn, tree=history_up_to(2).tree)
    with database.connect() as connection:
        connection.execute("set role orbit_owner")
        connection.execute(history.file(3).read_bytes())
    with pytest.raises(StepFailed, match="already exists"):
        migrations.up(database.dsn, tree=history.tree)
    migrations.resolve(database.dsn, version=3, state="applied", reason="ran by hand before", tree=history.tree)
    assert migrations.up(database.dsn, tree=history.tree).number_after == 4
    assert migrations.verify(database.dsn, tree=history.tree) == []


@pytest.mark.req("orbit:MIG-20")
@pytest.mark.parametrize(
    ("version", "state", "reason"),
    [
        (3, "reverted", "not dirty"),
        (99, "applied", "never began"),
        (3, "done", "no state"),
        (3, "applied", " "),
    ],
)
def test_only_a_dirty_version_is_resolved_and_only_with_a_reason(
    orbit_database: TestDatabase, version: int, state: str, reason: str
) -> None:
    """A decision about what did not stop half-way, an unknown state or an empty reason changes nothing."""
    with pytest.raises(InvalidSetting):
        migrations.resolve(orbit_database.dsn, version=version, state=state, reason=reason)
    assert set(_states(orbit_database).values()) == {"applied"}


@pytest.mark.req("orbit:MIG-20", "orbit:MIG-09")
@pytest.mark.parametrize(
    "statement",
    [
        "delete from orbit.schema_migration where number = 13",
        "update orbit.schema_migration set checksum = repeat('0', 64) where number = 13",
        "update orbit.schema_migration set finished_at = null where number = 13",
    ],
)
def test_an_applied_version_is_never_rewritten(orbit_database: TestDatabase, statement: str) -> None:
    """Not even by the owner: history is changed by nobody."""
    connection = orbit_database.connect("orbit_owner")
    with pytest.raises(psycopg.DatabaseError) as caught:
        connection.execute(statement.encode())
    assert caught.value.sqlstate == "SP020"


@pytest.mark.req("orbit:T-C09", "orbit:MIG-20", "orbit:MIG-09")
def test_a_migrator_killed_inside_the_newest_step_is_resolved_and_goes_on(
    orbit_empty_database: TestDatabase, history_up_to: HistoryUpTo, sessions: SessionFactory
) -> None:
    """Killed while 0013 waits for a lock: its row is dirty, the schema unchanged; resolve, then it runs."""
    database = orbit_empty_database
    migrations.up(database.dsn, tree=history_up_to(NEWEST - 1).tree)
    (reader,) = sessions(database, 1)
    reader.execute("select * from orbit.event_subscriptions")
    observer = database.connect(autocommit=True)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(migrations.up, database.dsn)
        process_id = int(eventually_row(observer, MIGRATING)[0])
        wait_until_blocked(observer, process_id, by=reader.process_id)
        database.kill(process_id)
        with pytest.raises(StepFailed):
            running.result(30)
    reader.rollback()
    assert _states(database)[NEWEST] == "dirty"
    row = observer.execute("select to_regclass('orbit.result_events'), to_regclass('orbit.event_streams')").fetchone()
    assert row == (None, None)
    with pytest.raises(HistoryDirty) as caught:
        migrations.up(database.dsn)
    assert caught.value.exit_code == 4
    migrations.resolve(database.dsn, version=NEWEST, state="reverted", reason="killed")
    assert migrations.up(database.dsn).number_after == NEWEST
    assert migrations.verify(database.dsn) == []


@pytest.mark.req("orbit:MIG-21", "orbit:T-M04")
def test_a_changed_file_of_an_applied_version_is_refused(
    orbit_database: TestDatabase, history_up_to: HistoryUpTo
) -> None:
    """One byte more than was applied: exit 5, and nothing repairs it."""
    history = history_up_to(NEWEST)
    history.append(5, "-- one more line\n")
    with pytest.raises(HistoryDiffers) as caught:
        migrations.up(orbit_database.dsn, tree=history.tree)
    assert caught.value.exit_code == 5
    assert migrations.verify(orbit_database.dsn, tree=history.tree) == ["migration 0005_task_attempts is changed"]
    assert migrations.verify(orbit_database.dsn) == []


@pytest.mark.req("orbit:MIG-21", "orbit:T-M04")
def test_a_gap_in_the_files_is_refused(orbit_empty_database: TestDatabase, history_up_to: HistoryUpTo) -> None:
    """A release whose versions are 1, 2, 4 is broken; nothing of it is applied."""
    history = history_up_to(4)
    history.file(3).unlink()
    with pytest.raises(HistoryDiffers, match="gap") as caught:
        migrations.up(orbit_empty_database.dsn, tree=history.tree)
    assert caught.value.exit_code == 5
    assert set(_states(orbit_empty_database, history.tree).values()) == {"pending"}


@pytest.mark.req("orbit:MIG-21", "orbit:T-M04")
def test_a_gap_in_the_database_is_refused(orbit_empty_database: TestDatabase, history_up_to: HistoryUpTo) -> None:
    """A database that lacks a version below its newest one is not filled up silently."""
    database, history = orbit_empty_database, history_up_to(4)
    migrations.up(database.dsn, tree=history.tree)
    with database.connect() as connection:
        connection.execute("alter table orbit.schema_migration disable trigger keep")
        connection.execute("delete from orbit.schema_migration where number = 2")
        connection.execute("alter table orbit.schema_migration enable trigger keep")
    with pytest.raises(HistoryDiffers, match="0002_credentials") as caught:
        migrations.up(database.dsn, tree=history.tree)
    assert caught.value.exit_code == 5
    assert any("gap" in fault for fault in migrations.verify(database.dsn, tree=history.tree))


@pytest.mark.req("orbit:MIG-21", "orbit:T-M04")
def test_a_newer_database_is_refused(orbit_database: TestDatabase, history_up_to: HistoryUpTo) -> None:
    """A database that a newer release has migrated: exit 5."""
    history = history_up_to(NEWEST)
    history.write(NEWEST + 1, "later", "create table orbit.later (a int);\n")
    migrations.up(orbit_database.dsn, tree=history.tree)
    with pytest.raises(HistoryDiffers) as caught:
        migrations.up(orbit_database.dsn)
    assert caught.value.exit_code == 5
    assert migrations.verify(orbit_database.dsn) == ["migration 0014_later is unknown"]


@pytest.mark.req("orbit:MIG-08", "orbit:MIG-05", "orbit:T-M03")
@pytest.mark.parametrize("name", ["orbit-server", "orbit-server-7"])
def test_active_writers_stop_the_migrator_unless_it_is_told_otherwise(orbit_database: TestDatabase, name: str) -> None:
    """A connection of `orbit serve` to this database: exit 3; other connections do not matter."""
    with psycopg.connect(orbit_database.dsn, application_name="orbit-cli"):
        assert not migrations.up(orbit_database.dsn).changed
    with psycopg.connect(orbit_database.dsn, application_name=name):
        with pytest.raises(WritersActive, match=name) as caught:
            migrations.up(orbit_database.dsn)
        assert caught.value.exit_code == 3
        assert not migrations.up(orbit_database.dsn, allow_active_writers=True).changed


@pytest.mark.req("orbit:MIG-19")
def test_two_migrators_at_once_make_one_history(orbit_empty_database: TestDatabase) -> None:
    """One waits for the other and then finds nothing to do."""
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(migrations.up, [orbit_empty_database.dsn] * 2))
    assert sorted(report.changed for report in reports) == [False, True]
    assert migrations.verify(orbit_empty_database.dsn) == []


@pytest.mark.req("orbit:OPS-02")
def test_verify_names_a_function_that_is_missing_or_another(
    orbit_database: TestDatabase, history_up_to: HistoryUpTo
) -> None:
    """The functions are part of what the database must match."""
    with orbit_database.connect() as connection:
        connection.execute("drop function orbit.time_text(timestamptz)")
    assert "the function time_text is missing or not that of this release" in migrations.verify(orbit_database.dsn)
    history = history_up_to(NEWEST)
    file = history.root / "functions" / "id" / "new.sql"
    file.write_text(file.read_text(encoding="utf-8") + "-- changed\n", encoding="utf-8")
    assert "the function id_new is missing or not that of this release" in migrations.verify(
        orbit_database.dsn, tree=history.tree
    )


@pytest.mark.req("orbit:OPS-05", "orbit:MIG-09", "orbit:T-M04")
def test_the_servers_role_sees_why_a_schema_cannot_be_served(
    orbit_database: TestDatabase, orbit_empty_database: TestDatabase, history_up_to: HistoryUpTo
) -> None:
    """Ready only with the code's own version, the same checksums and nothing dirty."""

    async def faults(database: TestDatabase) -> tuple[str, ...]:
        async with await psycopg.AsyncConnection.connect(database.dsn, autocommit=True) as connection:
            if database is orbit_database:
                await connection.execute("set role orbit_server")
            return await migrations.schema_faults(connection)

    assert asyncio.run(faults(orbit_database)) == ()
    assert len(asyncio.run(faults(orbit_empty_database))) == 1
    history = history_up_to(NEWEST)
    history.write(NEWEST + 1, "later", BROKEN)
    with pytest.raises(StepFailed):
        migrations.up(orbit_database.dsn, tree=history.tree)
    assert len(asyncio.run(faults(orbit_database))) == 1
