# ruff: noqa: E501 - statements and messages are each one line
"""What the doctor says beyond drift: broken facts, an unwise server, logins with too much, what it could not see."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from psycopg import AsyncConnection

from seapost.cli.exit_codes import ExitCode
from seapost.cli.main import run
from seapost.database.doctor import FindingKind, examine
from tests.kit.database import TestDatabase

Doctor = Callable[..., tuple[ExitCode, list[dict[str, str]]]]


@pytest.fixture
def doctor(database: TestDatabase, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Give the command, run on the test's database; it returns the exit code and the findings without warnings."""

    def look(*options: str) -> tuple[ExitCode, list[dict[str, str]]]:
        code = run(["doctor", "--json", "--dsn", database.dsn, *options])
        document = json.loads(capsys.readouterr().out)
        return code, [one for one in document.get("findings", []) if one["kind"] != "warning"]

    return look


async def _texts(connection: AsyncConnection, kind: FindingKind, *, batch: int = 1, dispatchers: int = 1) -> list[str]:
    return [one.text for one in (await examine(connection, batch=batch, dispatchers=dispatchers)).of(kind)]


def test_facts_that_contradict_each_other_are_told(database: TestDatabase, doctor: Doctor) -> None:
    """A row of audit_places is a defect, exit 7, and is not looked for with --no-audit."""
    with database.connect() as connection:
        connection.execute(
            "insert into seapost.delivery_ready (event_id, available_at, created_at, member_id, attempt_count,"
            " failure_count, lost_count, event_digest, destination)"
            " values ('01920000-0000-7000-8000-000000000001', now(), now(), 1, 0, 0, 0, '', 'billing')"
        )
    code, findings = doctor()
    assert code is ExitCode.CHECK_FAILED
    subject = "event 01920000-0000-7000-8000-000000000001, destination billing"
    assert {(one["kind"], one["subject"]) for one in findings} == {("defect", subject)}
    assert f"{subject}: place without delivery" in [one["text"] for one in findings]
    assert doctor("--no-audit") == (ExitCode.DONE, [])


def test_what_a_role_may_not_see_is_told(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer may read neither the facts nor the guard level: exit 8, never 0."""
    monkeypatch.setenv("SEAPOST_DATABASE_ROLE", "seapost_producer")
    code, findings = doctor()
    assert code is ExitCode.PARTIAL
    assert {(one["kind"], one["subject"]) for one in findings} == {("unseen", "guard level"), ("unseen", "facts")}


def test_views_that_cannot_be_compared_are_told(database: TestDatabase, doctor: Doctor) -> None:
    """Without the right to make temporary tables, or in a read-only session, nothing is known about views."""
    with database.connect() as connection:
        connection.execute(
            "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$"
        )
    code, findings = doctor()
    assert code is ExitCode.PARTIAL
    assert [(one["kind"], one["subject"]) for one in findings] == [("unseen", "views")]


async def test_a_role_without_temporary_tables_is_told(database: TestDatabase) -> None:
    """The finding carries the server's own reason."""
    connection = await database.connect_async(autocommit=True)
    await connection.execute(
        "do $$ begin execute format('revoke temporary on database %I from public', current_database()); end $$"
    )
    await connection.execute("set role seapost_auditor")
    (text,) = await _texts(connection, FindingKind.UNSEEN)
    assert text.startswith("the definitions of views could not be compared: permission denied to create temporary")


async def test_the_level_is_found_out_where_it_may_not_be_read(strict_database: TestDatabase) -> None:
    """A role that may not read the guard level still gets no false drift."""
    connection = await strict_database.connect_async(autocommit=True)
    await connection.execute("set role seapost_consumer")
    examination = await examine(connection)
    assert examination.guard_level == "strict"
    assert examination.of(FindingKind.DRIFT) == []


def test_a_level_that_is_recorded_wrongly_is_drift(database: TestDatabase, doctor: Doctor) -> None:
    """What the database says of itself is compared with what it holds."""
    with database.connect() as connection:
        connection.execute("update seapost.guard_level set level = 'strict'")
    code, findings = doctor()
    assert code is ExitCode.FAILED
    assert ("table publication, constraint publication_event", "missing") in [
        (one["subject"], one["found"]) for one in findings
    ]


def test_a_database_without_the_schema_is_another_failure(empty_database: TestDatabase) -> None:
    """There is nothing to compare: exit 5, as with every other command."""
    assert run(["doctor", "--dsn", empty_database.dsn]) is ExitCode.SCHEMA


def test_history_is_compared(database: TestDatabase, doctor: Doctor) -> None:
    """A migration that is missing or half done is drift; one of a newer release ends the look with exit 5."""
    with database.connect() as connection:
        connection.execute("alter table seapost.schema_migration disable trigger keep")
        connection.execute("update seapost.schema_migration set finished_at = null where number = 2")
        connection.execute("delete from seapost.schema_migration where number = 3")
        connection.execute("alter table seapost.schema_migration enable trigger keep")
    code, findings = doctor()
    assert code is ExitCode.FAILED
    assert [(one["subject"], one["found"]) for one in findings] == [
        ("migration 0002_facts.pre", "half done"),
        ("migration 0003_moving.pre", "not applied; run `seapost migrate`"),
    ]
    with database.connect() as connection:
        connection.execute(
            "insert into seapost.schema_migration (number, phase, name, checksum, release, finished_at)"
            " values (9999, 'pre', 'later', repeat('a', 64), '99', now())"
        )
    assert doctor() == (ExitCode.SCHEMA, [])


@pytest.mark.parametrize(
    ("statements", "kind", "text"),
    [
        ("set local session_replication_role = replica", FindingKind.DEFECT, "session_replication_role is replica: the triggers"),
        ("set local synchronous_commit = off", FindingKind.WARNING, "synchronous_commit is off: a crash may take back"),
        ("set local default_transaction_isolation = serializable", FindingKind.WARNING, "default_transaction_isolation is"),
        ("create role seapost_test_root login superuser in role seapost_producer", FindingKind.WARNING, "role seapost_test_root, a member of seapost_producer, is a superuser"),
        ("create role seapost_test_all login in role seapost_owner, seapost_dispatcher", FindingKind.WARNING, "role seapost_test_all works as seapost_dispatcher and may become seapost_owner"),
        ("create role seapost_test_own login; alter view seapost.outbox_events owner to seapost_test_own", FindingKind.DEFECT, "role seapost_test_own may log in and owns 1 objects"),
        ("alter table seapost.publication detach partition seapost.publication_0001; alter table seapost.publication attach partition seapost.publication_0001 default; insert into seapost.publication values ('01920000-0000-7000-8000-000000000001', now())", FindingKind.WARNING, "the default partition of publication holds"),
    ],
)  # fmt: skip
async def test_an_unwise_place_is_told(statements: str, kind: FindingKind, text: str, database: TestDatabase) -> None:
    """Each of these is told once, with what it means."""
    connection = await database.connect_async(autocommit=True)
    async with connection.transaction(force_rollback=True):
        await connection.execute(statements.encode())
        told = await _texts(connection, kind)
    assert len([one for one in told if one.startswith(text)]) == 1, told


async def test_a_lock_table_that_settling_may_fill_is_told(database: TestDatabase) -> None:
    """Half of the lock table is the most that batches times dispatchers may need."""
    connection = await database.connect_async(autocommit=True)
    row = await (
        await connection.execute(
            "select current_setting('max_locks_per_transaction')::int"
            " * (current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int)"
        )
    ).fetchone()
    assert row is not None
    half: int = row[0] // 2
    fits = await _texts(connection, FindingKind.WARNING, batch=half, dispatchers=1)
    fills = await _texts(connection, FindingKind.WARNING, batch=half, dispatchers=2)
    expected = f"the lock table has {row[0]} places and settling may need {2 * half} of them: raise max_locks_per_transaction or make batches smaller"
    assert [one for one in fills if one not in fits] == [expected]


def test_a_person_reads_a_table_and_a_count(database: TestDatabase, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json the differences stand in a table, long sides cut, and the last line counts."""
    with database.connect() as connection:
        connection.execute("alter table seapost.delivery_ready set (fillfactor = 50)")
        connection.execute(
            "create or replace view seapost.guard_levels as select 'lean' || '' as level, changed_at from seapost.guard_level"
        )
    assert run(["doctor", "--dsn", database.dsn]) is ExitCode.FAILED
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["drift", "in", "of", "should", "be", "is"]
    (ready,) = [line.split() for line in lines if line.startswith("table delivery_ready")]
    assert ready == ["table", "delivery_ready", "option", "fillfactor", "unset", "50"]
    (view,) = [line for line in lines if line.startswith("view guard_levels")]
    assert "'lean'::text || ''::text" in view
    assert " 2 drift, 0 defect, " in lines[-1]


@pytest.mark.req("F77")
async def test_who_holds_an_old_snapshot_is_told(database: TestDatabase) -> None:
    """A session that keeps dead rows is named with the age of its snapshot; a young one is nobody's concern."""
    holder = database.connect()
    holder.execute("set transaction isolation level repeatable read")
    holder.execute("select set_config('application_name', 'nightly report', false)")
    connection = await database.connect_async()
    found = (await examine(connection, snapshot_seconds=0.0)).of(FindingKind.WARNING)
    subject = f"session {holder.info.backend_pid} (nightly report)"
    (told,) = [one for one in found if one.subject == subject]
    assert told.text.startswith(f"{subject} holds a snapshot that is ")
    found = (await examine(connection, snapshot_seconds=3_600.0)).of(FindingKind.WARNING)
    assert subject not in {one.subject for one in found}
