"""Facts are never changed or deleted: by trigger against the owner, and by missing grant against every role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from seapost.database.installer import GuardLevel
from tests.kit import builders
from tests.kit.builders import PLACED, SEARCH, SHIPPED
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.kernel import Kernel

# Fact table and a column that an update would touch.
FACTS = {
    "event": "envelope",
    "delivery": "destination",
    "delivery_attempt_start": "token",
    "delivery_attempt_finish": "finished_at",
    "delivery_acknowledgement": "receipt_digest",
    "publication": "published_at",
    "inbox_receipt": "receipt_candidate",
    "delivery_quarantine": "event_digest",
    "delivery_set_version": "candidate",
    "delivery_set_event": "mandatory_count",
    "delivery_set_member": "destination",
    "audit_record": "actor",
    "aggregate_revision": "event_id",
}
PARTITIONED = (
    "event",
    "delivery",
    "delivery_attempt_start",
    "delivery_attempt_finish",
    "delivery_acknowledgement",
    "publication",
    "inbox_receipt",
)
TABLES = FACTS | {f"{name}_0001": FACTS[name] for name in PARTITIONED}
ROLES = ("producer", "dispatcher", "consumer", "operator", "auditor")
STATEMENTS: dict[str, LiteralString] = {
    "update": "update seapost.{table} set {column} = {value}",
    "delete": "delete from seapost.{table}",
    "truncate": "truncate seapost.{table} cascade",
}


@pytest.fixture(scope="module")
def facts(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a strict database with at least one row in every fact table."""
    database = database_server.create(GuardLevel.STRICT)
    kernel = Kernel(database.connect(autocommit=True))
    kernel.route()
    kernel.append_new(SHIPPED)
    kernel.append_new(PLACED)
    kernel.acknowledge(*kernel.claim())
    kernel.quarantine(*kernel.claim(SEARCH))
    kernel.rows(
        "select * from seapost.inbox_receive_v1('c', %s, %s, %s, %s)",
        [builders.new_event_id()],
        [bytes(32)],
        ["r"],
        [b"{}"],
    )
    for name in FACTS:
        query = sql.SQL("select count(*) from seapost.{}").format(sql.Identifier(name))
        ((rows,),) = kernel.connection.execute(query)
        assert rows > 0, f"{name} is empty"
    yield database
    database.assert_places()
    database_server.drop(database)


def _value(table: str) -> sql.Composable:
    """A new value; a quarantine may be updated once, by its acknowledgement, so there it must differ."""
    if table == "delivery_quarantine":
        return sql.SQL("sha256(event_digest)")
    return sql.Identifier(TABLES[table])


def _state(database: TestDatabase, table: str, statement: str, role: str) -> str | None:
    """The SQLSTATE that the statement ends in, as this role."""
    text = sql.SQL(STATEMENTS[statement]).format(
        table=sql.Identifier(table), column=sql.Identifier(TABLES[table]), value=_value(table)
    )
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        try:
            connection.execute(text)
        except psycopg.Error as error:
            return error.sqlstate
    return None


@pytest.mark.req("STO-28", "STO-13", "STO-15", "NEG-02", "NEG-03", "NEG-09", "PUB-07", "SEC-03", "STO-01", "SET-17")
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("table", TABLES)
def test_the_owner_is_stopped_by_the_trigger(facts: TestDatabase, table: str, statement: str) -> None:
    """Even the owner of the tables changes no fact, neither through the table nor through its partition."""
    assert _state(facts, table, statement, "seapost_owner") in (
        {"SP020", "SP021"} if table == "delivery_set_version" else {"SP020"}
    )


@pytest.mark.req("STO-28", "NEG-02", "NEG-03", "NEG-09", "SEC-03", "PUB-02", "SEC-02", "REF-14")
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("table", TABLES)
def test_no_runtime_role_has_the_grant(facts: TestDatabase, table: str, statement: str) -> None:
    """Producer, dispatcher, consumer, operator and auditor are stopped before any trigger runs."""
    states = {role: _state(facts, table, statement, f"seapost_{role}") for role in ROLES}
    assert states == dict.fromkeys(ROLES, "42501")


@pytest.mark.req("STO-28", "NEG-02")
@pytest.mark.parametrize(
    "column", ["definition_id", "created_at", "event_id", "mandatory_count", "occurred_at", "event_type"]
)
def test_each_frozen_column_of_an_event_is_protected(facts: TestDatabase, column: str) -> None:
    """Creation time, definition and identity are as fixed as the envelope; the digest is generated and cannot be
    set.
    """
    with psycopg.connect(facts.dsn, autocommit=True) as connection:
        query = sql.SQL("update seapost.event set {0} = {0}").format(sql.Identifier(column))
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(query)
        assert caught.value.sqlstate == "SP020"
        with pytest.raises(psycopg.errors.GeneratedAlways):
            connection.execute("update seapost.event set digest = digest")


@pytest.mark.req("SET-17", "SET-13")
def test_the_status_of_a_definition_moves_forward_only(facts: TestDatabase) -> None:
    """Not even the superuser un-retires, un-activates, skips a status or moves the time of activation."""
    with psycopg.connect(facts.dsn, autocommit=True) as connection:
        changes: tuple[LiteralString, ...] = (
            "status = 'registered'",
            "status = 'active'",
            "activated_at = now()",
            "source_release = 'x'",
        )
        for change in changes:
            with pytest.raises(psycopg.Error) as caught:
                connection.execute("update seapost.delivery_set_version set " + change)  # noqa: S608 - literals
            assert caught.value.sqlstate in {"SP020", "SP021", "23514"}


@pytest.mark.req("NEG-01", "STO-24", "REF-07")
@pytest.mark.parametrize(
    "statement",
    [
        "insert into seapost.delivery_attempt_finish values (gen_random_uuid(), 1, now(), 5, 'timeout', null)",
        "insert into seapost.delivery_attempt_finish values (gen_random_uuid(), 1, now(), 0, 'timeout', null)",
        "insert into seapost.delivery_attempt_finish values (gen_random_uuid(), 1, now(), 2, 'dead_letter', null)",
        "insert into seapost.delivery_attempt_finish values (gen_random_uuid(), 1, now(), 2, null, null)",
        "insert into seapost.delivery_attempt_finish values (gen_random_uuid(), 1, now(), 1, 'timeout', null)",
        (
            "insert into seapost.delivery_quarantine"
            " values (gen_random_uuid(), 1, now(), 'd', 'retryable', null, sha256(''))"
        ),
        (
            "insert into seapost.delivery_set_version (delivery_set_version, definition_schema_version,"
            " digest_algorithm_version, status, registered_at, source_release, candidate)"
            " values ('x', '1', 'jcs-sha256-v1', 'draft', now(), '', '')"
        ),
    ],
    ids=["outcome 5", "outcome 0", "code", "no code", "code of success", "reason", "status"],
)
def test_unknown_values_are_refused_by_the_tables(facts: TestDatabase, statement: LiteralString) -> None:
    """Outcomes, codes, reasons and statuses are closed sets; no word like `dead_letter` can be stored."""
    with psycopg.connect(facts.dsn, autocommit=True) as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(statement)


@pytest.mark.req("NEG-03", "DLV-15", "NEG-09", "PUB-07", "TST-31")
@pytest.mark.parametrize(
    "table", ["delivery_attempt_start", "delivery_attempt_finish", "publication", "delivery_acknowledgement"]
)
def test_a_fact_is_inserted_once(facts: TestDatabase, table: str) -> None:
    """A second start, finish, publication or acknowledgement under the same key is refused by the table itself."""
    query = sql.SQL("insert into seapost.{0} select * from seapost.{0}").format(sql.Identifier(table))
    with psycopg.connect(facts.dsn, autocommit=True) as connection, pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute(query)
