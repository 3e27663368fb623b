"""A fault after each single write of a result, and at its commit: all of it or nothing (SRC-05, SRC-06)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg import Connection, sql

from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.orbit.platform import Held, Platform, assert_tasks_whole, found

TABLES: Final = (
    "tasks", "task_attempts", "permits", "events", "result_events", "execution_receipts", "audit_log",
    "idempotency_records",
)  # fmt: skip
RAISE: Final[LiteralString] = """
create function public.test_fault() returns trigger language plpgsql as $$
begin
    if current_setting('test.fault', true) = tg_name then
        raise exception using errcode = 'XX999', message = 'a fault of the test';
    end if;
    return coalesce(new, old);
end $$"""
FAULT: Final = "XX999"
CONFIRM_WRITES: Final = (
    "tasks",
    "task_attempts",
    "permits",
    "events",
    "result_events",
    "execution_receipts",
    "audit_log",
)
KEYED: Final = ("tasks", "events", "result_events", "audit_log", "idempotency_records")


def _lay_faults(connection: Connection[Any]) -> None:
    """Triggers that fail a transaction whose `test.fault` names them: after a table's write, before it, at commit."""
    connection.execute(RAISE)
    for table in TABLES:
        connection.execute(
            sql.SQL(
                "create trigger {} after insert or update or delete on orbit.{} for each row"
                " execute function public.test_fault()"
            ).format(sql.Identifier(f"after {table}"), sql.Identifier(table))
        )
    connection.execute(
        'create trigger "stream locked" before insert on orbit.result_events for each row'
        " execute function public.test_fault();"
        ' create constraint trigger "commit" after insert or update on orbit.tasks deferrable initially deferred'
        " for each row execute function public.test_fault();"
        ' create trigger "response stored" after update on orbit.idempotency_records for each row'
        " execute function public.test_fault()"
    )


def _all_rows(connection: Connection[Any]) -> list[tuple[Any, ...]]:
    """What every table holds."""
    found_rows: list[tuple[Any, ...]] = []
    for table in TABLES:
        query = sql.SQL("select {}, x::text from orbit.{} as x order by 2").format(table, sql.Identifier(table))
        found_rows += connection.execute(query).fetchall()
    return found_rows


def _started(platform: Platform) -> Held:
    return platform.start()


def _lost(platform: Platform) -> Held:
    held = platform.start()
    platform.lose(held)
    return held


def _in_review(platform: Platform) -> Held:
    held = platform.start()
    platform.confirm(held, "failed", effect="unknown")
    return held


Operation = Callable[[Platform, Held], object]
OPERATIONS: Final[dict[str, tuple[Callable[[Platform], Held], Operation, tuple[str, ...]]]] = {
    "confirm": (_started, lambda platform, held: platform.confirm(held), CONFIRM_WRITES),
    "cancel": (
        _started,
        lambda platform, held: platform.cancel(held.task_id, 2, key="once"),
        (*KEYED, "task_attempts", "permits"),
    ),
    "resolve": (_in_review, lambda platform, held: platform.resolve(held.task_id, 3, key="once"), KEYED),
    "recover": (
        _lost,
        lambda platform, held: platform.recover(held),
        tuple(table for table in CONFIRM_WRITES if table != "execution_receipts"),
    ),
}


def _faults(writes: tuple[str, ...]) -> list[str]:
    keyed = ["response stored"] if "idempotency_records" in writes else []
    return [f"after {table}" for table in writes] + ["stream locked", "commit", *keyed]


@pytest.mark.req("orbit:SRC-05", "orbit:SRC-06", "orbit:SRC-07", "orbit:SRC-09", "orbit:AUD-04", "orbit:T-C01")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_fault_after_any_write_leaves_nothing(orbit_database: TestDatabase, name: str) -> None:
    """After each write, after the stream's lock and at commit: no row anywhere, no answer; then the retry succeeds."""
    prepare, operation, writes = OPERATIONS[name]
    connection = orbit_database.connect(autocommit=True)
    _lay_faults(connection)
    platform = Platform(connection, found(connection))
    held = prepare(platform)
    before = _all_rows(connection)
    for fault in _faults(writes):
        connection.execute("select set_config('test.fault', %s, false)", (fault,))
        with pytest.raises(psycopg.Error) as failed:
            operation(platform, held)
        assert (failed.value.sqlstate, fault) == (FAULT, fault)
        assert _all_rows(connection) == before
    connection.execute("select set_config('test.fault', '', false)")
    results = len(platform.journal())
    operation(platform, held)
    assert [row[0] for row in platform.journal()] == list(range(1, results + 2))
    assert_tasks_whole(connection)


@pytest.mark.req("orbit:TSK-02", "orbit:SRC-06")
@pytest.mark.parametrize("table", ["tasks", "task_attempts", "permits", "events", "audit_log"])
def test_a_fault_in_a_claim_gives_no_attempt(orbit_database: TestDatabase, table: str) -> None:
    """TX-02: a claim that fails after any of its writes leaves the task ready for the next one."""
    connection = orbit_database.connect(autocommit=True)
    _lay_faults(connection)
    platform = Platform(connection, found(connection))
    task_id = platform.submitted()
    before = _all_rows(connection)
    connection.execute("select set_config('test.fault', %s, false)", (f"after {table}",))
    with pytest.raises(psycopg.Error) as failed:
        platform.claim()
    assert failed.value.sqlstate == FAULT
    assert _all_rows(connection) == before
    connection.execute("select set_config('test.fault', '', false)")
    assert [held.task_id for held in platform.claim()] == [task_id]


@pytest.mark.req("orbit:SRC-08", "orbit:T-C02", "orbit:API-11")
def test_a_lost_answer_is_given_again(orbit_database: TestDatabase) -> None:
    """The session that confirmed dies after the commit, its answer unread: the repetition gets the receipt."""
    connection = orbit_database.connect(autocommit=True)
    platform = Platform(connection, found(connection))
    held = platform.start()
    dying = orbit_database.connect(autocommit=True)
    dying.pgconn.send_query_params(
        b"select orbit.attempt_confirm_v1($1, $2, $3, 'succeeded', 'none', false, '1.00')",
        [platform.place.token_sha256, held.attempt_id.encode(), held.secret_sha256],
        param_types=[17, 25, 17],
        param_formats=[1, 0, 1],
    )
    dying.pgconn.flush()
    eventually(lambda: len(platform.journal()) == 1, what="the commit")
    stored = platform.value("select response_json from orbit.execution_receipts")
    dying.close()
    again = platform.confirm(held, result="1.00")
    assert (again.text, again.replayed) == (stored, True)
    assert len(platform.journal()) == 1
    assert len(platform.audits("task.result.confirmed")) == 1
    with pytest.raises(psycopg.Error) as refused:
        platform.confirm(replace(held, secret_sha256=bytes(32)), result="1.00")
    assert refused.value.sqlstate == "OB010"
