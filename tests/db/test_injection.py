"""Names and texts are data: nothing that looks like SQL runs, and no login climbs out of the role it was given."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import conninfo, sql

from seapost.database.doctor.compare import compare
from seapost.database.doctor.snapshot import Objects
from tests.kit import builders, hostile, rights
from tests.kit.builders import BILLING, PLACED
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.manifest import snapshot_of

ROLES = ("producer", "dispatcher", "consumer", "operator", "auditor")

# Refusals by our own rules, and by the types and limits of the server; never a syntax error or a missing object.
EXPECTED = ("SP", "22", "23", "53", "54")

CLIMBS = [
    "set role seapost_owner",
    "set role postgres",
    "select set_config('role', 'seapost_owner', false)",
    "do $$ begin set local role seapost_owner; end $$",
    "set session authorization seapost_owner",
    "select set_config('session_authorization', 'seapost_owner', false)",
    "set session_replication_role = replica",
    "alter role current_user superuser",
    "alter role seapost_owner login",
    "grant seapost_owner to current_user",
    "create function seapost.mine() returns int language sql as 'select 1'",
    "create or replace function seapost.clock_now() returns timestamptz language sql as 'select now()'",
    "alter function seapost.clock_now() security definer",
    "drop function seapost.clock_now()",
    "alter table seapost.event disable trigger all",
    "drop trigger immutable on seapost.audit_record",
    "create trigger mine before insert on seapost.event for each row execute function pg_temp.evil()",
    "create rule mine as on insert to seapost.event do instead nothing",
    "create index on seapost.delivery_ready (pg_temp.index_evil(destination))",
    "alter table seapost.delivery_ready alter suspect set default pg_temp.index_evil('x')",
    "create policy mine on seapost.event using (true)",
    "create view seapost.mine as select 1",
    "create or replace view seapost.guard_levels as select 'lean', now()",
    "alter default privileges for role seapost_owner grant all on tables to public",
    "grant select on seapost.event to public",
    "grant usage on schema seapost to public with grant option",
    "create table public.heir () inherits (seapost.event)",
    "create table seapost.event_2 partition of seapost.event default",
    "create publication mine for table seapost.event",
    "create event trigger mine on ddl_command_end execute function pg_temp.evil_event()",
    "create cast (text as uuid) with inout",
    "create operator pg_catalog.=== (leftarg = text, rightarg = text, function = texteq)",
    "comment on table seapost.event is 'mine'",
    "reassign owned by seapost_owner to current_user",
    "drop owned by seapost_owner",
    "copy (select 1) to program 'true'",
    "copy pg_temp.mine from '/etc/hostname'",
    "select pg_read_file('PG_VERSION')",
    "select lo_import('/etc/hostname')",
    "select * from pg_authid",
    "alter system set fsync = off",
    "load 'plpgsql'",
    "create extension file_fdw",
    "lock table seapost.event in access exclusive mode",
]


@pytest.fixture(scope="module")
def untouched(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give the module one database: nothing may change it."""
    made = database_server.create(rights.GuardLevel.STRICT)
    yield made
    database_server.drop(made)


@pytest.fixture(scope="module")
def login(untouched: TestDatabase) -> Iterator[str]:
    """Give the name of a login role that is a member of nothing yet."""
    name = f"seapost_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(untouched.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
    yield name
    with psycopg.connect(untouched.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


async def _objects(database: TestDatabase) -> Objects:
    return (await snapshot_of(database.dsn)).objects


@pytest.mark.req("SEC-01", "SEC-03", "SEC-04")
@pytest.mark.parametrize("text", hostile.STRINGS, ids=lambda text: repr(text[:24]))
async def test_text_that_looks_like_sql_stays_text(strict_database: TestDatabase, text: str) -> None:
    """Handed to every function as every argument, it is stored, returned or refused by a rule, and never run."""
    before = await _objects(strict_database)
    with strict_database.connect(autocommit=True) as connection:
        Kernel(connection).route()
        stray: list[str] = []
        for one in rights.functions(connection):
            if not one.types:
                continue
            try:
                with connection.transaction():
                    connection.execute("set local statement_timeout = '5s'")
                    connection.execute(hostile.call(one, text))
            except psycopg.Error as error:
                if not (error.sqlstate or "").startswith(EXPECTED):
                    stray.append(f"{one.label}: {error.sqlstate} {error}")
        assert stray == []
        assert Kernel(connection).value("select session_user = current_user")
        assert Kernel(connection).count("audit_records") > 0
    assert list(compare(before, await _objects(strict_database))) == []


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize("text", hostile.STRINGS[:-1], ids=lambda text: repr(text[:24]))
def test_hostile_names_are_kept_or_refused_as_they_are(lean_kernel: Kernel, text: str) -> None:
    """A tenant, an aggregate or a payload of such text comes back byte for byte, or is refused by an envelope rule."""
    envelope = builders.envelope(
        tenant={"tenantKind": "organization", "tenantId": text, "workspaceId": text},
        aggregate={"kind": "order", "id": text, "revision": 1},
        payload={text: text},
    )
    plain = builders.envelope(payload={text: text})
    assert lean_kernel.append(plain) == 1
    try:
        lean_kernel.append(envelope)
    except psycopg.Error as error:
        assert error.sqlstate == "SP006"  # noqa: PT017 - either outcome is right
    stored = {claim.envelope for claim in lean_kernel.claim(owner=text[:20])}
    assert plain in stored
    assert stored <= {plain, envelope}


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize("text", hostile.STRINGS, ids=lambda text: repr(text[:24]))
def test_a_hostile_name_goes_the_whole_way_or_is_refused(lean_kernel: Kernel, text: str) -> None:
    """A destination or an event type of such text is refused when it is registered, or works like any other."""
    kernel = lean_kernel
    for version, routes in (("2", {PLACED: (text,)}), ("3", {text: (BILLING,)})):
        candidate = builders.definition(version, routes)
        try:
            kernel.register(candidate)
        except psycopg.Error as error:
            assert (error.sqlstate or "").startswith("SP"), error  # noqa: PT017 - either outcome is right
            continue
        kernel.activate(version, candidate)
        ((event_type, (destination,)),) = routes.items()
        kernel.append(*(builders.envelope(event_type) for _ in range(4)))
        claims = kernel.claim(destination)
        assert [claim.member.event_type for claim in claims] == [event_type] * 4
        assert len(kernel.renew(*claims)) == 4
        assert kernel.acknowledge(claims[0]) == kernel.retry(claims[1]) == kernel.quarantine(claims[2]) == []
        kernel.run("select seapost.dispatcher_sleep_v1(%s)", destination)
        kernel.append(builders.envelope(event_type))
        kernel.run("select seapost.dispatcher_wake_v1(%s)", destination)
        assert kernel.status(claims[0].fence.event_id, destination) == "acknowledged"
        assert (
            kernel.value("select quarantined from seapost.destination_status where destination = %s", destination) == 1
        )


@pytest.mark.req("SEC-01", "SEC-02", "SEC-03", "SEC-04", "SEC-18", "NEG-48")
@pytest.mark.parametrize("role", ROLES)
async def test_no_login_climbs_out_of_its_role(untouched: TestDatabase, login: str, role: str) -> None:
    """A real login with one runtime role, temporary objects of its own included, is refused every way up."""
    before = await _objects(untouched)
    group = sql.Identifier(f"seapost_{role}")
    with psycopg.connect(untouched.dsn, autocommit=True) as owner:
        owner.execute(sql.SQL("grant {} to {}").format(group, sql.Identifier(login)))
        others = [f"set role seapost_{other}" for other in ROLES if other != role]
        with psycopg.connect(conninfo.make_conninfo(untouched.dsn, user=login), autocommit=True) as attacker:
            _prepare(attacker)
            passed = [statement for statement in (*CLIMBS, *others) if _passes(attacker, statement)]
            state = attacker.execute("select current_user, session_user, current_setting('is_superuser')").fetchone()
        owner.execute(sql.SQL("revoke {} from {}").format(group, sql.Identifier(login)))
    assert passed == []
    assert state == (login, login, "off")
    assert list(compare(before, await _objects(untouched))) == []


def _prepare(attacker: psycopg.Connection) -> None:
    """Everything that a login may make for itself."""
    attacker.execute("create temporary table mine (line text)")
    attacker.execute("create function pg_temp.evil() returns trigger language plpgsql as 'begin return new; end'")
    attacker.execute("create function pg_temp.evil_event() returns event_trigger language plpgsql as 'begin end'")
    attacker.execute("create function pg_temp.index_evil(text) returns boolean language sql immutable as 'select true'")


def _passes(attacker: psycopg.Connection, statement: str) -> bool:
    """Whether a statement succeeds; what it did is undone."""
    try:
        with attacker.transaction(force_rollback=True):
            attacker.execute(statement.encode())
    except psycopg.Error as error:
        assert not (error.sqlstate or "").startswith("42601"), f"{statement}: {error}"  # noqa: PT017 - a mistake of the test
        return False
    return True
