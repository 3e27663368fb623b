"""The catalogue: what tables and columns there are, that each says in Chinese what it is, and what must be absent."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.kit.orbit.scene import Scene
from tests.kit.tree import ORBIT_SQL

Row = tuple[Any, ...]

COLUMNS: dict[str, tuple[str, ...]] = {
    "namespaces": ("namespace_id", "name", "enabled", "created_at"),
    "applications": ("application_id", "namespace_id", "name", "enabled", "created_at"),
    "application_quotas": ("application_id", "max_open_tasks"),
    "credentials": (
        *("credential_id", "namespace_id", "application_id", "name", "token_sha256", "actions", "all_queues"),
        *("queue_ids", "expires_at", "revoked_at", "rotated_from", "created_at"),
    ),
    "queues": ("queue_id", "namespace_id", "name", "enabled", "max_running", "lease_seconds", "created_at"),
    "tasks": (
        *("task_id", "namespace_id", "application_id", "queue_id", "state", "revision", "effect_policy"),
        *("effect_uncertain", "input_json", "result_json", "max_attempts", "attempt_count", "current_attempt_id"),
        *("available_at", "created_by", "created_at", "updated_at"),
    ),
    "task_attempts": (
        *("attempt_id", "namespace_id", "task_id", "number", "state", "credential_id", "worker_id"),
        *("lease_secret_sha256", "lease_expires_at", "started_at", "finished_at"),
    ),
    "permits": ("permit_id", "queue_id", "attempt_id", "created_at"),
    "events": (
        *("event_id", "namespace_id", "queue_id", "task_id", "attempt_id", "type", "task_revision", "created_at"),
    ),
    "execution_receipts": (
        *("receipt_id", "namespace_id", "task_id", "attempt_id", "event_id", "request_sha256", "response_json"),
        "created_at",
    ),
    "audit_log": (
        *("audit_id", "namespace_id", "credential_id", "action", "resource_type", "resource_id", "detail_json"),
        "created_at",
    ),
    "idempotency_records": (
        *("identity_sha256", "namespace_id", "credential_id", "action", "request_sha256", "response_status"),
        *("response_json", "created_at"),
    ),
    "event_subscriptions": (
        *("subscription_id", "namespace_id", "name", "created_at", "updated_at", "legacy", "status"),
        *("owner_credential_id", "queue_id", "types", "from_sequence", "cursor_sequence", "max_pending"),
        *("max_attempts", "pending_count", "revision"),
    ),
    "event_deliveries": (
        *("delivery_id", "namespace_id", "subscription_id", "event_id", "state", "attempts", "lease_epoch"),
        *("created_at", "updated_at", "legacy", "event_sequence", "attempt_budget", "available_at"),
        *("lease_secret_sha256", "lease_connection_id", "lease_expires_at", "acked_at", "revision"),
    ),
    "event_stream_locks": ("namespace_id", "retained_from_sequence", "created_at", "updated_at"),
    "result_events": (
        *("event_id", "namespace_id", "queue_id", "task_id", "type", "sequence", "snapshot_json", "created_at"),
    ),
}
"""The tables of the specification, section 23: 16 of them with 140 columns (MIG-04)."""
INSTALLER: dict[str, tuple[str, ...]] = {
    "schema_migration": ("number", "phase", "name", "checksum", "release", "applied_at", "finished_at"),
    "schema_object": ("kind", "name", "checksum", "release", "applied_at"),
    "schema_resolution": ("number", "phase", "started_at", "state", "reason", "actor", "resolved_at"),
}
"""What the installer keeps for itself."""
VIEWS: dict[str, tuple[str, ...]] = {
    "event_streams": ("namespace_id", "last_sequence", "retained_from_sequence", "created_at", "updated_at"),
    "schema_migrations": ("version", "name", "checksum", "dirty", "started_at", "applied_at"),
    "schema_versions": ("number", "name", "phase", "checksum", "applied_at", "release", "finished_at"),
}
"""Views whose columns others rely on; every view's comments are looked at."""

CHINESE = re.compile(r"[\u4e00-\u9fff]")
ADVISORY = re.compile(r"pg_(?:try_)?advisory", re.IGNORECASE)


def _columns(scene: Scene, kind: str) -> dict[str, tuple[str, ...]]:
    rows = scene.rows(
        "select c.relname::text, array_agg(a.attname::text order by a.attnum)"
        " from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"
        " where c.relnamespace = 'orbit'::regnamespace and c.relkind = %s::\"char\" group by c.relname",
        kind,
    )
    return {name: tuple(columns) for name, columns in rows}


@pytest.mark.req("orbit:T-M05", "orbit:MIG-04", "orbit:TSK-01")
def test_the_inventory_of_tables_and_columns_is_this_list(orbit_scene: Scene) -> None:
    """A new table or column fails here until somebody has written it down; 16 tables and 140 columns by now."""
    assert _columns(orbit_scene, "r") == COLUMNS | INSTALLER
    assert len(COLUMNS) == 16
    assert sum(map(len, COLUMNS.values())) == 140


@pytest.mark.req("orbit:T-M05", "orbit:MIG-01", "orbit:MIG-04", "orbit:MIG-19", "orbit:JRN-20")
def test_the_views_that_others_rely_on_have_these_columns(orbit_scene: Scene) -> None:
    """The streams, and the migrations in two forms."""
    found = _columns(orbit_scene, "v")
    assert {name: found[name] for name in VIEWS} == VIEWS


@pytest.mark.req("orbit:T-M05", "orbit:MIG-02")
def test_every_table_view_and_column_says_in_chinese_what_it_is(orbit_scene: Scene) -> None:
    """An entity or field without a Chinese comment fails, whoever adds it; views count too."""
    rows = orbit_scene.rows(
        "select c.relname::text, ''::text, obj_description(c.oid, 'pg_class')"
        " from pg_class as c where c.relnamespace = 'orbit'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')"
        " union all select c.relname, a.attname, col_description(c.oid, a.attnum)"
        " from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"
        " where c.relnamespace = 'orbit'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')"
    )
    assert len(rows) > 140
    mute = sorted(f"{table}.{column}" for table, column, text in rows if CHINESE.search(text or "") is None)
    assert mute == []


@pytest.mark.req("orbit:T-M05", "orbit:LCK-10", "orbit:MIG-03")
def test_there_are_no_foreign_keys(orbit_scene: Scene) -> None:
    """A check of one would lock rows that no path here may lock."""
    assert (
        orbit_scene.rows(
            "select conname from pg_constraint where contype = 'f' and connamespace = 'orbit'::regnamespace"
        )
        == []
    )


@pytest.mark.req("orbit:JRN-07")
def test_nothing_is_numbered_by_a_sequence(orbit_scene: Scene) -> None:
    """Sequences are not transactional and leave gaps: none exists, and no column is an identity."""
    assert (
        orbit_scene.rows(
            "select relname from pg_class where relnamespace = 'orbit'::regnamespace and relkind = 'S'"
            " union all select attname from pg_attribute as a join pg_class as c on c.oid = a.attrelid"
            " where c.relnamespace = 'orbit'::regnamespace and a.attidentity <> ''"
        )
        == []
    )


@pytest.mark.req("orbit:SRC-19")
def test_json_is_stored_as_text(orbit_scene: Scene) -> None:
    """No column is json or jsonb: the exact text of a result must come back."""
    assert (
        orbit_scene.rows(
            "select c.relname, a.attname from pg_attribute as a join pg_class as c on c.oid = a.attrelid"
            " where c.relnamespace = 'orbit'::regnamespace and c.relkind = 'r'"
            " and a.atttypid in ('json'::regtype, 'jsonb'::regtype)"
        )
        == []
    )


@pytest.mark.req("orbit:LCK-13")
def test_no_function_takes_an_advisory_lock() -> None:
    """They do not replace row locks, and nothing here needs them for anything else."""
    named = [path.name for path in ORBIT_SQL.rglob("*.sql") if ADVISORY.search(path.read_text(encoding="utf-8"))]
    assert named == []


@pytest.mark.req("orbit:GEN-11")
def test_the_indexes_of_the_hot_paths_are_there(orbit_scene: Scene) -> None:
    """Names, keys and predicates, since the statements name exactly their columns."""
    rows = orbit_scene.rows(
        "select i.relname::text, replace(pg_get_indexdef(x.indexrelid), ' COLLATE \"C\"', '')"
        " from pg_index as x join pg_class as i on i.oid = x.indexrelid"
        " where i.relnamespace = 'orbit'::regnamespace and i.relname like '%%\\_idx'"
    )
    found = {name: definition.partition(" USING btree ")[2] for name, definition in rows}
    assert found == {
        "tasks_ready_idx": "(queue_id, available_at, task_id) WHERE ((state)::text = 'queued'::text)",
        "tasks_open_idx": (
            "(application_id) WHERE ((state)::text = ANY ((ARRAY['queued'::character varying,"
            " 'running'::character varying])::text[]))"
        ),
        "permits_queue_idx": "(queue_id)",
        "audit_resource_idx": "(namespace_id, resource_type, resource_id, created_at)",
        "result_events_scan_idx": "(queue_id, sequence)",
        "event_subscriptions_owner_idx": "(namespace_id, owner_credential_id, created_at, subscription_id)",
        "event_deliveries_ready_idx": "(subscription_id, event_sequence) WHERE ((state)::text = 'PENDING'::text)",
        "event_deliveries_leased_idx": "(subscription_id, lease_expires_at) WHERE ((state)::text = 'LEASED'::text)",
        "event_deliveries_list_idx": "(subscription_id, event_sequence)",
        "event_deliveries_expired_idx": "(subscription_id, event_sequence) WHERE ((state)::text = 'EXPIRED'::text)",
    }
