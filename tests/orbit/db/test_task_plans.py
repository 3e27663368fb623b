"""Plans made while the tables were empty still read few rows when they hold 20,000 (GEN-11, T-R25)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, LiteralString

import pytest
from psycopg import Connection

from tests.kit.database import TestDatabase
from tests.kit.orbit.platform import Held, Platform, found
from tests.kit.orbit.task_plans import Plans, faults

FILLED: Final = 20_000
FILL: Final[LiteralString] = """
with made as (
    select 'task_' || lpad(to_hex(n), 32, '0') as task_id, 'att_' || lpad(to_hex(n), 32, '0') as attempt_id,
        'evt_' || lpad(to_hex(n), 32, '0') as event_id, n
    from generate_series(%(first)s + 1, %(first)s + %(rows)s) as n),
tasks as (
    insert into orbit.tasks (task_id, namespace_id, application_id, queue_id, state, revision, effect_policy,
        input_json, attempt_count, current_attempt_id, created_by)
    select task_id, %(namespace)s, %(application)s, %(queue)s, 'succeeded', 3, 'unsafe', '{}', 1, attempt_id, 'cred_1'
    from made),
ready as (
    insert into orbit.tasks (task_id, namespace_id, application_id, queue_id, state, effect_policy, input_json,
        created_by)
    select replace(task_id, 'task_', 'task_ready_'), %(namespace)s, %(application)s, %(queue)s, 'queued', 'unsafe',
        '{}', 'cred_1'
    from made where n %% 10 = 0),
attempts as (
    insert into orbit.task_attempts (attempt_id, namespace_id, task_id, number, state, credential_id, worker_id,
        lease_secret_sha256, lease_expires_at)
    select attempt_id, %(namespace)s, task_id, 1, 'SUCCEEDED', 'cred_1', 'w', sha256(''), now() from made),
events as (
    insert into orbit.events (event_id, namespace_id, queue_id, task_id, attempt_id, type, task_revision)
    select event_id, %(namespace)s, %(queue)s, task_id, attempt_id, 'task.succeeded', 3 from made),
receipts as (
    insert into orbit.execution_receipts (receipt_id, namespace_id, task_id, attempt_id, event_id, request_sha256,
        response_json)
    select 'rcpt_' || n, %(namespace)s, task_id, attempt_id, event_id, repeat('0', 64), '{}' from made),
audits as (
    insert into orbit.audit_log (audit_id, namespace_id, action, resource_type, resource_id, detail_json)
    select 'audit_' || n, %(namespace)s, 'task.result.confirmed', 'task', task_id, '{}' from made)
insert into orbit.result_events (event_id, namespace_id, queue_id, task_id, type, sequence, snapshot_json)
select event_id, %(namespace)s, %(queue)s, task_id, 'task.succeeded', n,
    '{"schema_version":1,"task_id":"' || task_id || '","queue_id":"' || %(queue)s
    || '","state":"succeeded","revision":3,"effect_uncertain":false,"current_attempt_id":"' || attempt_id
    || '","result":null}'
from made order by n"""


def _fill(connection: Connection[Any], platform: Platform, first: int) -> None:
    """Add finished tasks with everything that belongs to them, and ready ones, without telling the planner."""
    place = platform.place
    connection.execute("set session_replication_role = replica")
    connection.execute(
        FILL,
        {
            "first": first,
            "rows": FILLED,
            "namespace": place.namespace_id,
            "application": place.application_id,
            "queue": place.queue_ids[0],
        },
    )
    connection.execute("set session_replication_role = origin")


def _calls(platform: Platform, held: dict[str, Held]) -> dict[str, Callable[[], object]]:
    """Every operation once, in an order in which each finds what it needs."""

    def claim() -> None:
        for name in ("confirmed", "requeued", "cancelled", "lost"):
            (held[name],) = platform.claim()
        platform.lose(held["lost"])

    return {
        "submit": lambda: [platform.submitted(policy="unsafe") for _ in range(4)],
        "claim": claim,
        "heartbeat": lambda: platform.heartbeat(held["confirmed"]),
        "confirm": lambda: platform.confirm(held["confirmed"], "failed", effect="unknown"),
        "repeat": lambda: platform.confirm(held["confirmed"], "failed", effect="unknown"),
        "requeue": lambda: platform.confirm(held["requeued"], "failed", retryable=True),
        "cancel": lambda: platform.cancel(held["cancelled"].task_id, 2),
        "expired": lambda: platform.rows("select * from orbit.attempt_expired_v1(null, null, 100)"),
        "expired of a queue": lambda: platform.rows(
            "select * from orbit.attempt_expired_v1(%s, 'billing', 16)", platform.place.token_sha256
        ),
        "recover": lambda: platform.recover(held["lost"]),
        "resolve": lambda: platform.resolve(held["confirmed"].task_id, 3),
        "get": lambda: platform.task(held["confirmed"].task_id),
    }


@pytest.mark.req("orbit:GEN-11", "orbit:T-R25", "orbit:LCK-14", "orbit:TSK-07")
def test_hot_statements_keep_their_indexes_while_tables_grow(orbit_database: TestDatabase) -> None:
    """Every operation on tasks, planned on tiny tables, then with 20,000 of everything and no ANALYZE."""
    connection = orbit_database.connect(autocommit=True)
    connection.execute(
        "do $$ declare t text; begin for t in select tablename from pg_tables where schemaname = 'orbit' loop"
        " execute format('alter table orbit.%I set (autovacuum_enabled = off)', t); end loop; end $$"
    )
    platform = Platform(connection, found(connection, max_open_tasks=100_000))
    plans = Plans(connection)
    held: dict[str, Held] = {}
    for _ in range(2):  # on empty tables, then on tables that are known to be tiny
        for call in _calls(platform, held).values():
            call()
        connection.execute("analyze")
        connection.execute("discard plans")
    for call in _calls(platform, held).values():
        call()
    first = platform.value("select max(sequence) from orbit.result_events")
    _fill(connection, platform, first)
    connection.execute("delete from orbit.tasks where state = 'queued' and task_id not like 'task_ready_%'")
    for name, call in _calls(platform, held).items():
        nodes, _ = plans.of(call)
        assert (name, faults(nodes)) == (name, [])
        assert nodes
    assert platform.value("select max(sequence) from orbit.result_events") == first + FILLED + 4
