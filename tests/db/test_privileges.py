"""Who may do what: the complete matrix of roles, objects and privileges, and nothing for PUBLIC (SEC-01)."""

from __future__ import annotations

from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from tests.kit import builders
from tests.kit.kernel import Kernel

ROLES = ("producer", "dispatcher", "consumer", "operator", "auditor", "verifier")

READS_FOR_ALL = {"schema_versions"}
DEFINITIONS = {"delivery_set_versions", "delivery_set_members"}
OPERATIONS = {
    "outbox_events",
    "outbox_deliveries",
    "outbox_delivery_attempt_starts",
    "outbox_delivery_attempt_finishes",
    "outbox_quarantine",
    "destination_status",
    "destination_settings",
    "audit_records",
    "audit_places",
    "guard_levels",
    "inbox_receipts",
    "projection_versions",
    "projection_aggregates",
    "projection_gaps",
    "projection_rebuilds",
    "projection_switches",
    "projection_tables",
    "completeness_snapshots",
}

SELECT: dict[str, set[str]] = {
    "producer": READS_FOR_ALL | DEFINITIONS,
    "dispatcher": READS_FOR_ALL | DEFINITIONS | {"destination_status"},
    "consumer": READS_FOR_ALL | DEFINITIONS | {"projection_rebuilds", "projection_switches", "projection_versions"},
    "operator": READS_FOR_ALL | DEFINITIONS | OPERATIONS,
    "auditor": READS_FOR_ALL | DEFINITIONS | OPERATIONS,
    "verifier": READS_FOR_ALL
    | {"completeness_snapshots", "projection_switches", "projection_tables", "projection_versions"},
}

EXECUTE: dict[str, set[str]] = {
    "producer": {
        "canonical_json_v1",
        "outbox_append_v1",
        "projection_applied_v1",
        "projection_current",
    },
    "dispatcher": {
        "backpressure_show_v1",
        "clock_now",
        "delivery_acknowledge_v1",
        "delivery_claim_v1",
        "delivery_quarantine_v1",
        "delivery_recover_v1",
        "delivery_renew_v1",
        "delivery_retry_v1",
        "destination_waiting",
        "dispatcher_sleep_v1",
        "dispatcher_wake_v1",
    },
    "consumer": {
        "inbox_committed_at_v1",
        "inbox_meet_v1",
        "inbox_read_v1",
        "inbox_receive_v1",
        "inbox_record_v1",
        "observation_accept_v1",
        "observation_feed_v1",
        "observation_record_v1",
        "projection_accept_v1",
        "projection_advance_v1",
        "projection_applied_v1",
        "projection_claim_v1",
        "projection_current",
        "projection_expected_v1",
        "projection_feed_v1",
        "projection_meet_v1",
        "projection_meet_v2",
        "projection_missing_v1",
        "projection_pause_v1",
        "projection_progress_v1",
        "projection_stall_v1",
        "projection_wait_v1",
    },
    "operator": {
        "backpressure_set_v1",
        "backpressure_show_v1",
        "clock_now",
        "completeness_query_v1",
        "completeness_watch_v1",
        "completeness_watched",
        "delivery_set_activate_v1",
        "delivery_set_register_v1",
        "destination_set_fair_lanes_v1",
        "destination_waiting",
        "projection_applied_v1",
        "projection_current",
        "projection_cutover_abandon_v1",
        "projection_cutover_activated_v1",
        "projection_cutover_begin_v1",
        "projection_cutover_finish_v1",
        "projection_cutover_freeze_v1",
        "projection_cutover_stop_active_v1",
        "projection_cutover_switch_v1",
        "projection_pause_v1",
        "projection_register_v1",
        "projection_register_v2",
        "projection_retire_v1",
        "quarantine_acknowledge_v1",
    },
    "auditor": {
        "backpressure_show_v1",
        "clock_now",
        "completeness_query_v1",
        "destination_waiting",
        "projection_applied_v1",
        "projection_current",
    },
    "verifier": {
        "completeness_prove_v1",
        "completeness_query_v1",
        "projection_applied_v1",
        "projection_current",
    },
}

# Functions that run with the rights of whoever calls them; the calling function has the rights already.
INVOKER_FUNCTIONS = {
    "audit_append",
    "backpressure_admit",
    "backpressure_admit_envelopes",
    "backpressure_closed_for",
    "backpressure_probe",
    "backpressure_seen",
    "backpressure_wait",
    "canonical_json_v1",
    "canonical_number",
    "canonical_text",
    "clock_now",
    "completeness_aggregates",
    "completeness_anti_join",
    "completeness_check_semantic",
    "completeness_definition_digest",
    "completeness_judged",
    "completeness_measure",
    "completeness_quarantined",
    "completeness_receipts",
    "completeness_rehash",
    "completeness_row_sum",
    "completeness_set_digest",
    "completeness_source",
    "completeness_tables",
    "completeness_unfinished",
    "completeness_unsupported",
    "completeness_watch_v1",
    "delivery_check_arguments",
    "delivery_choose_fairly",
    "delivery_publish",
    "delivery_receipt_matches",
    "delivery_refused",
    "delivery_set_check",
    "delivery_set_items_rule",
    "delivery_set_lock_key",
    "delivery_suspects_allowed",
    "delivery_tenant_hash",
    "delivery_usual_receipt",
    "dispatcher_sleep_key",
    "forward_status",
    "guards_set_v1",
    "outbox_append_one",
    "outbox_compare",
    "outbox_envelope_headers",
    "outbox_envelope_parts_rule",
    "outbox_envelope_rule",
    "outbox_explain_envelopes",
    "outbox_is_identifier",
    "outbox_is_timestamp",
    "outbox_notify_sleepers",
    "projection_check_actor",
    "projection_claim_key",
    "projection_cutover_candidate",
    "projection_cutover_end",
    "projection_cutover_hold",
    "projection_cutover_rest",
    "projection_definition_problem",
    "projection_enter",
    "projection_open_gaps",
    "projection_slot",
    "projection_within_candidate",
    "quarantine_once",
    "refuse_change",
    "schema_migration_keep",
}
# Inlined by the planner only without settings; every name inside is qualified.
UNPINNED_FUNCTIONS = {
    "clock_now",
    "delivery_receipt_matches",
    "delivery_set_lock_key",
    "delivery_tenant_hash",
    "delivery_usual_receipt",
    "dispatcher_sleep_key",
    "projection_slot",
}


@pytest.mark.req("SEC-01", "SEC-02", "SEC-03", "SEC-06", "NEG-48", "GEN-07")
@pytest.mark.parametrize("role", ROLES)
def test_a_role_reads_exactly_its_views_and_runs_exactly_its_functions(shared_kernel: Kernel, role: str) -> None:
    """Over every table, view, column, sequence and function of the schema, the role holds this list and no more."""
    name = f"seapost_{role}"
    rights = shared_kernel.rows(
        "select c.relname, p.privilege from pg_class as c,"
        " unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) as p (privilege)"
        " where c.relnamespace = 'seapost'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')"
        " and (has_table_privilege(%s, c.oid, p.privilege) or (p.privilege in ('select', 'insert', 'update',"
        " 'references')"
        " and has_any_column_privilege(%s, c.oid, p.privilege)))",
        name,
        name,
    )
    assert set(rights) == {(view, "select") for view in SELECT[role]}
    functions = shared_kernel.rows(
        "select p.proname from pg_proc as p where p.pronamespace = 'seapost'::regnamespace"
        " and has_function_privilege(%s, p.oid, 'execute')",
        name,
    )
    assert {row[0] for row in functions} == EXECUTE[role]
    sequences = shared_kernel.rows(
        "select c.relname from pg_class as c where c.relnamespace = 'seapost'::regnamespace and c.relkind = 'S'"
        " and (has_sequence_privilege(%s, c.oid, 'usage') or has_sequence_privilege(%s, c.oid, 'select, update'))",
        name,
        name,
    )
    assert sequences == []
    schema = shared_kernel.row(
        "select has_schema_privilege(%s, 'seapost', 'usage'), has_schema_privilege(%s, 'seapost', 'create')", name, name
    )
    assert schema == (True, False)


@pytest.mark.req("SEC-01", "SEC-06")
def test_public_holds_nothing(shared_kernel: Kernel) -> None:
    """No object of the schema grants anything to PUBLIC, directly or by its default rights."""
    granted = shared_kernel.rows(
        "select c.relname, a.privilege_type from pg_class as c,"
        " aclexplode(coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::\"char\","
        " c.relowner)))"
        " as a"
        " where c.relnamespace = 'seapost'::regnamespace and a.grantee = 0"
        " union all select p.proname, a.privilege_type from pg_proc as p,"
        " aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a"
        " where p.pronamespace = 'seapost'::regnamespace and a.grantee = 0"
        " union all select n.nspname, a.privilege_type from pg_namespace as n,"
        " aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) as a where n.nspname = 'seapost' and"
        " a.grantee = 0"
        " union all select t.attrelid::regclass::text, a.privilege_type from pg_attribute as t join pg_class as c"
        " on c.oid = t.attrelid, aclexplode(t.attacl) as a where c.relnamespace = 'seapost'::regnamespace and"
        " a.grantee = 0"
    )
    assert granted == []


@pytest.mark.req("SEC-01", "SEC-04")
def test_every_object_belongs_to_the_owner_who_cannot_log_in(shared_kernel: Kernel) -> None:
    """Schema, tables, views and functions are owned by seapost_owner; none of our roles can log in or is more than a
    role.
    """
    owners = shared_kernel.rows(
        "select distinct pg_get_userbyid(o.owner) from ("
        " select c.relowner as owner from pg_class as c where c.relnamespace = 'seapost'::regnamespace"
        " union all select p.proowner from pg_proc as p where p.pronamespace = 'seapost'::regnamespace"
        " union all select n.nspowner from pg_namespace as n where n.nspname = 'seapost') as o"
    )
    assert owners == [("seapost_owner",)]
    powers = shared_kernel.rows(
        "select rolname from pg_roles where rolname like 'seapost\\_%%'"
        " and (rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication)"
    )
    assert powers == []
    memberships = shared_kernel.rows(
        "select m.rolname, r.rolname from pg_auth_members as a join pg_roles as m on m.oid = a.member"
        " join pg_roles as r on r.oid = a.roleid where m.rolname like 'seapost\\_%%' and r.rolname like 'seapost\\_%%'"
    )
    assert memberships == []


@pytest.mark.req("SEC-01")
def test_functions_with_the_owners_rights_pin_their_search_path(shared_kernel: Kernel) -> None:
    """A definer function resolves names in pg_catalog only; the rest runs with its caller's rights, by this list."""
    functions = shared_kernel.rows(
        "select p.proname, p.prosecdef, coalesce('search_path=pg_catalog, pg_temp' = any(p.proconfig), false)"
        " from pg_proc as p where p.pronamespace = 'seapost'::regnamespace"
    )
    assert {name for name, definer, _ in functions if not definer} == INVOKER_FUNCTIONS
    assert {name for name, _, pinned in functions if not pinned} == UNPINNED_FUNCTIONS
    assert not UNPINNED_FUNCTIONS - INVOKER_FUNCTIONS


@pytest.mark.req("NEG-48", "SEC-01", "SEC-04", "SEC-02")
@pytest.mark.parametrize(
    "statement",
    [
        "select seapost.outbox_append_v1('{}')",
        "select seapost.delivery_set_register_v1('{}', 'r', 'a')",
        "select seapost.delivery_set_activate_v1('1', '', 'a')",
        "select seapost.inbox_receive_v1('c', '{}', '{}', '{}', '{}')",
        "select seapost.guards_set_v1('lean')",
        "select seapost.delivery_publish('{}')",
        "insert into seapost.event (event_id) values (gen_random_uuid())",
        "insert into seapost.delivery_set_version default values",
        "insert into seapost.inbox_receipt default values",
        "insert into seapost.publication values (gen_random_uuid(), now())",
        "update seapost.publication set published_at = now()",
        "delete from seapost.delivery_lease",
        "delete from seapost.delivery_ready",
        "update seapost.delivery_lease set expires_at = '-infinity'",
        "insert into seapost.delivery_ready default values",
        "insert into seapost.delivery_attempt_finish values (gen_random_uuid(), 1, now(), 4, 'lease_expired', null)",
        "select * from seapost.delivery_lease",
        "select * from seapost.outbox_events",
        "select nextval('seapost.attempt_id')",
        "create table seapost.mine (a int)",
        "alter table seapost.delivery_lease disable trigger all",
        "set session_replication_role = replica",
    ],
)
def test_the_dispatcher_cannot_go_around_its_functions(shared_kernel: Kernel, statement: LiteralString) -> None:
    """Events, definitions, receipts and publications are out of its reach, and leases move by its functions only."""
    connection = shared_kernel.connection
    with connection.transaction(force_rollback=True):
        connection.execute("set local role seapost_dispatcher")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute(statement)


@pytest.mark.req("SEC-01", "SEC-04", "CLM-07")
def test_each_role_does_its_whole_work_with_its_own_rights(kernel: Kernel) -> None:
    """Append, claim, renew, settle, recover, receive, read and operate all run as the role that is meant to."""

    def become(role: str) -> None:
        kernel.connection.execute(sql.SQL("set role {}").format(sql.Identifier(f"seapost_{role}")))

    become("operator")
    kernel.route("2")
    become("producer")
    kernel.append_new(count=4)
    become("dispatcher")
    claims = kernel.claim()
    assert len(kernel.renew(*claims)) == 4
    assert kernel.acknowledge(claims[0]) == kernel.retry(claims[1]) == kernel.quarantine(claims[2]) == []
    assert kernel.recover() == {}
    assert kernel.value("select seapost.dispatcher_sleep_v1('billing')")
    assert kernel.value("select seapost.dispatcher_wake_v1('billing')")
    assert kernel.value("select leased from seapost.destination_status where destination = 'billing'") == 1
    become("consumer")
    event_id = claims[0].fence.event_id
    kernel.rows("select * from seapost.inbox_receive_v1('c', %s, %s, '{r}', %s)", [event_id], [bytes(32)], [b"{}"])
    read = kernel.row(
        "select * from seapost.inbox_read_v1('c', %s, %s, 'r', %s)", event_id, bytes(32), builders.digest(b"{}")
    )
    assert read[0] == "found"
    become("operator")
    kernel.run("select seapost.quarantine_acknowledge_v1(%s, 'billing', null, 'ann')", claims[2].fence.event_id)
    for role in ("operator", "auditor"):
        become(role)
        assert kernel.defects() == []
        assert kernel.count("outbox_events") == 4
        assert kernel.count("inbox_receipts") == 1
    kernel.connection.execute("reset role")
