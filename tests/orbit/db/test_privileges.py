"""Who may do what in Orbit's schema: runtime roles run functions and read views, and PUBLIC holds nothing (SEC-01)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, LiteralString

import psycopg
import pytest

from tests.kit.database import DatabaseServer
from tests.kit.orbit.database import new_orbit_database
from tests.kit.orbit.scene import Scene, opened_scene

ROLES: Final = ("orbit_server", "orbit_operator", "orbit_auditor")
READS_FOR_ALL: Final = {"schema_migrations", "schema_versions"}
OPERATIONS: Final = {"event_streams", "stream_status", "subscription_status"}
SELECT: Final[dict[str, set[str]]] = {
    "orbit_server": READS_FOR_ALL,
    "orbit_operator": READS_FOR_ALL | OPERATIONS,
    "orbit_auditor": READS_FOR_ALL | OPERATIONS,
}
HISTORY: Final = {"history_journal_v1", "history_subscriptions_v1", "history_audit_v1"}
ADMINISTRATION: Final = {
    "access_bootstrap_v1",
    "credential_issue_v1",
    "credential_rotate_v1",
    "credential_revoke_v1",
    "queue_create_v1",
    "quota_set_v1",
}
RECOVERY: Final = {"attempt_expired_v1", "attempt_recover_v1"}
AUDITED: Final = HISTORY | {"stream_head"}
"""A view calls `stream_head` as its reader."""
EXECUTE: Final[dict[str, set[str]]] = {
    "orbit_operator": AUDITED | ADMINISTRATION | RECOVERY | {"readiness_v1"},
    "orbit_auditor": AUDITED,
}
PUBLIC_FUNCTION: Final = re.compile(r".+_v\d+")
DEFERRED_GUARDS: Final = {"guard_require_journal", "guard_require_event", "guard_require_response"}
"""Run at commit, when the rights of the function that wrote the row have ended."""


@pytest.fixture(scope="module")
def scene(database_server: DatabaseServer) -> Iterator[Scene]:
    """Give a scene for tests that only look, or roll back."""
    database = new_orbit_database(database_server)
    with opened_scene(database) as opened:
        yield opened
    database_server.drop(database)


def _functions(scene: Scene, role: str) -> set[str]:
    rows = scene.rows(
        "select p.proname::text from pg_proc as p where p.pronamespace = 'orbit'::regnamespace"
        " and has_function_privilege(%s, p.oid, 'execute')",
        role,
    )
    return {row[0] for row in rows}


@pytest.mark.req("orbit:LCK-14", "orbit:AUT-08")
@pytest.mark.parametrize("role", ROLES)
def test_a_role_of_orbit_holds_no_right_on_a_table(scene: Scene, role: str) -> None:
    """Over every table, view and column: SELECT on the views of the list and nothing else; and no right to create."""
    rights = scene.rows(
        "select c.relname::text, p.privilege::text from pg_class as c,"
        " unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) as p (privilege)"
        " where c.relnamespace = 'orbit'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')"
        " and (has_table_privilege(%s, c.oid, p.privilege) or (p.privilege in ('select', 'insert', 'update',"
        " 'references') and has_any_column_privilege(%s, c.oid, p.privilege)))",
        role,
        role,
    )
    assert set(rights) == {(view, "select") for view in SELECT[role]}
    schema = scene.row(
        "select has_schema_privilege(%s, 'orbit', 'usage'), has_schema_privilege(%s, 'orbit', 'create')", role, role
    )
    assert schema == (True, False)


@pytest.mark.req("orbit:AUT-08")
@pytest.mark.parametrize("role", list(EXECUTE))
def test_operator_and_auditor_run_exactly_their_functions(scene: Scene, role: str) -> None:
    """An operator administers and recovers, an auditor reads; neither speaks for a credential."""
    assert _functions(scene, role) == EXECUTE[role]


@pytest.mark.req("orbit:AUT-08", "orbit:LCK-14")
def test_the_server_runs_every_versioned_function_that_is_not_the_operators(scene: Scene) -> None:
    """What it may run is the interface, and each of those functions checks a token; none of them makes a credential."""
    rows = scene.rows("select proname::text from pg_proc where pronamespace = 'orbit'::regnamespace")
    interface = {name for (name,) in rows if PUBLIC_FUNCTION.fullmatch(name)}
    assert _functions(scene, "orbit_server") == interface - ADMINISTRATION - HISTORY


@pytest.mark.req("orbit:AUT-08")
def test_public_holds_nothing_in_the_schema_of_orbit(scene: Scene) -> None:
    """No relation, column, function, or the schema grants anything to PUBLIC, directly or by its default rights."""
    granted = scene.rows(
        "select c.relname, a.privilege_type from pg_class as c,"
        " aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) as a"
        " where c.relnamespace = 'orbit'::regnamespace and a.grantee = 0"
        " union all select p.proname, a.privilege_type from pg_proc as p,"
        " aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a"
        " where p.pronamespace = 'orbit'::regnamespace and a.grantee = 0"
        " union all select n.nspname, a.privilege_type from pg_namespace as n,"
        " aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) as a where n.nspname = 'orbit' and a.grantee = 0"
        " union all select t.attname, a.privilege_type from pg_attribute as t join pg_class as c"
        " on c.oid = t.attrelid, aclexplode(t.attacl) as a where c.relnamespace = 'orbit'::regnamespace"
        " and a.grantee = 0"
    )
    assert granted == []


@pytest.mark.req("orbit:AUT-08")
def test_every_object_of_orbit_belongs_to_an_owner_who_cannot_log_in(scene: Scene) -> None:
    """Schema, relations and functions are orbit_owner's; none of its roles can log in or is more than a role."""
    owners = scene.rows(
        "select distinct pg_get_userbyid(o.owner)::text from ("
        " select c.relowner as owner from pg_class as c where c.relnamespace = 'orbit'::regnamespace"
        " union all select p.proowner from pg_proc as p where p.pronamespace = 'orbit'::regnamespace"
        " union all select n.nspowner from pg_namespace as n where n.nspname = 'orbit') as o"
    )
    assert owners == [("orbit_owner",)]
    powers = scene.rows(
        "select rolname from pg_roles where rolname like 'orbit\\_%%'"
        " and (rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication)"
    )
    memberships = scene.rows(
        "select m.rolname from pg_auth_members as a join pg_roles as m on m.oid = a.member"
        " join pg_roles as r on r.oid = a.roleid where m.rolname like 'orbit\\_%%' and r.rolname like 'orbit\\_%%'"
    )
    assert (powers, memberships) == ([], [])


@pytest.mark.req("orbit:LCK-14")
def test_the_interface_runs_as_the_owner_with_its_search_path_pinned(scene: Scene) -> None:
    """The versioned functions and the guards at commit have the owner's rights; names resolve in pg_catalog first."""
    rows = scene.rows(
        "select p.proname::text, p.prosecdef, coalesce('search_path=pg_catalog, pg_temp' = any(p.proconfig), false)"
        " from pg_proc as p where p.pronamespace = 'orbit'::regnamespace"
    )
    assert {name for name, definer, _ in rows if definer} == {
        name for name, _, _ in rows if PUBLIC_FUNCTION.fullmatch(name)
    } | DEFERRED_GUARDS
    assert [name for name, definer, pinned in rows if definer and not pinned] == []


@pytest.mark.req("orbit:AUT-08", "orbit:SRC-23")
@pytest.mark.parametrize(
    "statement",
    [
        "select orbit.access_bootstrap_v1('n', 'a', '{q}', 'c', sha256('x'), '{tasks:read}')",
        "select orbit.credential_issue_v1('acme', 'shop', 'c', sha256('x'), '{tasks:read}', true, '{}')",
        "select orbit.journal_append('e', 'n', 'q', 't', 'task.succeeded', '{}')",
        "select orbit.audit_write('n', null, 'a', 'task', 't', '{}')",
        "select orbit.stream_head('n')",
        "select token_sha256 from orbit.credentials",
        "select result_json from orbit.tasks",
        "select * from orbit.event_streams",
        "update orbit.credentials set actions = '{tasks:read}'",
        "update orbit.event_deliveries set state = 'ACKED'",
        "insert into orbit.event_stream_locks (namespace_id) values ('n')",
        "delete from orbit.audit_log",
        "truncate orbit.result_events",
        "alter table orbit.result_events disable trigger all",
        "create table orbit.mine (a int)",
        "set session_replication_role = replica",
    ],
)
def test_the_server_cannot_go_around_its_functions(scene: Scene, statement: LiteralString) -> None:
    """Credentials, results, journal and audit are out of its reach except through what checks a token."""
    with scene.connection.transaction(force_rollback=True):
        scene.run("set local role orbit_server")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), scene.connection.transaction():
            scene.run(statement)
