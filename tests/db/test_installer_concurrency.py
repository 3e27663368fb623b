"""Several installers, blocked installers and killed installers: one state or the other, never half."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from seapost.database.installer import MigrationReport, check_schema, migrate
from seapost.database.installer.lock import installer_key
from seapost.model.errors import MigrationBlocked
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.eventually import eventually_row
from tests.kit.sessions import SessionFactory, wait_until_blocked
from tests.kit.sql_files import SqlFiles

RUNNERS = 8
MIGRATE_SESSION = """
select a.pid from pg_stat_activity as a
where a.application_name = 'seapost-migrate' and a.datname = current_database() and a.wait_event_type = 'Lock'"""


def _all_at_once(database: TestDatabase) -> list[MigrationReport]:
    barrier = threading.Barrier(RUNNERS)

    def run() -> MigrationReport:
        barrier.wait()
        return migrate(database.dsn)

    with ThreadPoolExecutor(RUNNERS) as pool:
        return [future.result() for future in [pool.submit(run) for _ in range(RUNNERS)]]


@pytest.mark.req("F62")
def test_of_eight_installers_one_works(empty_database: TestDatabase) -> None:
    """Started together on an empty database, one installs and seven find the work done."""
    reports = _all_at_once(empty_database)
    assert [report.changed for report in reports].count(True) == 1
    assert len({report.number_after for report in reports}) == 1
    with psycopg.connect(empty_database.dsn) as connection:
        check_schema(connection)


@pytest.mark.req("F62")
def test_databases_of_one_server_install_side_by_side(database_server: DatabaseServer) -> None:
    """Roles belong to the server and locks to a database; installers of several databases do not trip over that."""
    databases = [database_server.create() for _ in range(4)]
    try:
        with ThreadPoolExecutor(len(databases)) as pool:
            reports = list(pool.map(migrate, [one.dsn for one in databases]))
        assert all(report.changed for report in reports)
    finally:
        for one in databases:
            database_server.drop(one)


@pytest.mark.req("F63")
def test_a_blocked_installer_gives_up_and_names_who_blocks(
    empty_database: TestDatabase, sql_files: SqlFiles, sessions: SessionFactory
) -> None:
    """An open transaction on a table makes the upgrade fail in time, named, undone, and repeatable."""
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.write("migrations/0002_new.pre.sql", "create table fake.new (id int);\n")
    sql_files.write("migrations/0003_more.pre.sql", "alter table fake.thing add column more int;\n")
    (reader,) = sessions(empty_database, 1)
    reader.execute("select * from fake.thing")
    with pytest.raises(MigrationBlocked) as caught:
        migrate(empty_database.dsn, tree=sql_files.tree, lock_timeout_seconds=0.5)
    assert f"process {reader.process_id} " in str(caught.value)
    with psycopg.connect(empty_database.dsn) as connection:
        assert connection.execute("select to_regclass('fake.new')").fetchone() == (None,)
    reader.rollback()
    assert migrate(empty_database.dsn, tree=sql_files.tree, lock_timeout_seconds=0.5).number_after == 3


@pytest.mark.req("F62")
def test_a_killed_installer_leaves_the_old_state(
    empty_database: TestDatabase, sql_files: SqlFiles, sessions: SessionFactory
) -> None:
    """An installer whose session is killed in its second step leaves nothing, and the next run does it all."""
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.write("migrations/0002_new.pre.sql", "create table fake.new (id int);\n")
    sql_files.write("migrations/0003_more.pre.sql", "alter table fake.thing add column more int;\n")
    (reader,) = sessions(empty_database, 1)
    reader.execute("select * from fake.thing")
    observer = empty_database.connect(autocommit=True)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(migrate, empty_database.dsn, tree=sql_files.tree, lock_timeout_seconds=60)
        process_id = int(eventually_row(observer, MIGRATE_SESSION)[0])
        wait_until_blocked(observer, process_id, by=reader.process_id)
        empty_database.kill(process_id)
        with pytest.raises(psycopg.OperationalError):
            running.result(30)
    reader.rollback()
    assert observer.execute("select to_regclass('fake.new')").fetchone() == (None,)
    report = migrate(empty_database.dsn, tree=sql_files.tree)
    assert (report.number_before, report.number_after) == (1, 3)


@pytest.mark.req("F62")
def test_a_repeatable_file_goes_on_by_itself_after_a_kill(
    empty_database: TestDatabase, sql_files: SqlFiles, sessions: SessionFactory
) -> None:
    """A concurrent index whose session was killed half-way is built by the next run, without an operator."""
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.write(
        "migrations/0002_index.pre.sql",
        "-- transaction: off\n-- repeat: safe\n"
        "drop index concurrently if exists fake.thing_note;\n"
        "create index concurrently thing_note on fake.thing (note);\n",
    )
    (writer,) = sessions(empty_database, 1)
    writer.execute("insert into fake.thing values (1, 'open')")
    observer = empty_database.connect(autocommit=True)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(migrate, empty_database.dsn, tree=sql_files.tree, lock_timeout_seconds=60)
        process_id = int(eventually_row(observer, MIGRATE_SESSION)[0])
        empty_database.kill(process_id)
        with pytest.raises(psycopg.OperationalError):
            running.result(30)
    writer.commit()
    assert migrate(empty_database.dsn, tree=sql_files.tree).number_after == 2
    valid = observer.execute("select indisvalid from pg_index where indexrelid = 'fake.thing_note'::regclass")
    assert valid.fetchone() == (True,)


@pytest.mark.req("F84")
def test_a_foreign_holder_of_the_lock_means_a_bounded_wait(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """Whoever holds the installer's 64-bit key keeps it waiting for a limited time, and is named."""
    key = installer_key(sql_files.tree.schema)
    holder = empty_database.connect(autocommit=True)
    holder.execute("select pg_advisory_lock(%s)", (key,))
    with pytest.raises(MigrationBlocked, match=f"process {holder.info.backend_pid} "):
        migrate(empty_database.dsn, tree=sql_files.tree, wait_seconds=0.2)
    holder.execute("select pg_advisory_unlock(%s)", (key,))
    assert migrate(empty_database.dsn, tree=sql_files.tree, wait_seconds=0.2).changed


@pytest.mark.req("F84")
def test_small_advisory_keys_of_an_application_do_not_meet_ours(
    empty_database: TestDatabase, sql_files: SqlFiles
) -> None:
    """An application that holds the keys 1 to 1000, single and in pairs, does not hold the installer up."""
    holder = empty_database.connect(autocommit=True)
    holder.execute("select pg_advisory_lock(n), pg_advisory_lock(n, n) from generate_series(1, 1000) as n")
    report = migrate(empty_database.dsn, tree=sql_files.tree, wait_seconds=0.2)
    assert not report.waited
