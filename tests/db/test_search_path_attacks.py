"""No definer function can be led astray: it finds names in pg_catalog, whatever the caller's session holds."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from seapost.model.delivery_set import Member
from tests.kit import builders, rights, traps
from tests.kit.builders import SHIPPED
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, Row

CALLERS = tuple(f"seapost_{name}" for name in ("producer", "dispatcher", "consumer", "operator", "auditor", "verifier"))
SAFE = "pg_catalog, pg_temp"
DEFINERS: LiteralString = (
    "select p.oid, p.proname::text from pg_catalog.pg_proc as p"
    " where p.pronamespace = 'seapost'::regnamespace and p.prosecdef"
)


class _Victim(Kernel):
    """A kernel whose own statements name the server's types, so that only the functions meet the traps."""

    def rows(self, query: LiteralString, *arguments: object) -> list[Row]:
        for name in ("text[]", "timestamptz[]", "interval[]"):
            query = query.replace(f"::{name}", f"::pg_catalog.{name}")
        return super().rows(query, *arguments)

    def member(self, member_id: int) -> Member:
        (path,) = self.row("select pg_catalog.current_setting('search_path')")
        self.take(SAFE)
        found = super().member(member_id)
        self.take(path)
        return found

    def take(self, path: str) -> None:
        self.connection.execute("select pg_catalog.set_config('search_path', %s, true)", (path,))

    def become(self, role: str) -> None:
        self.connection.execute(sql.SQL("set local role {}").format(sql.Identifier(f"seapost_{role}")))

    def rest(self) -> None:
        self.connection.execute("reset role")


@pytest.fixture
def victim(strict_database: TestDatabase) -> Iterator[_Victim]:
    """Give a strict kernel, which has every definer function, in a transaction with all traps set."""
    with strict_database.connect(autocommit=True) as connection, connection.transaction(force_rollback=True):
        connection.execute("set local track_functions = 'all'")
        connection.execute("create role seapost_test_caller")
        yield _Victim(connection)


@contextmanager
def _hostile(victim: _Victim, path: str) -> Generator[None]:
    """The block runs with the attacker's search path."""
    victim.take(path)
    yield
    victim.rest()
    victim.take(SAFE)


def _work(victim: _Victim) -> None:
    """Everything that the roles do in daily life, each as itself."""
    victim.become("operator")
    victim.route()
    victim.become("producer")
    victim.append_new(count=4)
    victim.append_new(SHIPPED)
    victim.connection.execute("set constraints all immediate")
    victim.become("dispatcher")
    claims = victim.claim()
    assert len(victim.renew(*claims)) == 5
    assert victim.acknowledge(claims[0]) == victim.retry(claims[1]) == victim.quarantine(claims[2]) == []
    assert victim.recover() == {}
    assert victim.claim(builders.SEARCH, lease=timedelta(minutes=1))
    assert victim.value("select seapost.dispatcher_sleep_v1('billing')")
    assert victim.value("select seapost.dispatcher_wake_v1('billing')")
    victim.become("consumer")
    event_id = claims[0].fence.event_id
    victim.rows("select * from seapost.inbox_receive_v1('c', %s, %s, '{r}', %s)", [event_id], [bytes(32)], [b"{}"])
    victim.rows(
        "select * from seapost.inbox_read_v1('c', %s, %s, 'r', %s)", event_id, bytes(32), builders.digest(b"{}")
    )
    victim.become("operator")
    victim.run("select seapost.quarantine_acknowledge_v1(%s, 'billing', null, 'ann')", claims[2].fence.event_id)
    _fold(victim)


def _fold(victim: _Victim) -> None:
    """A fold writes a watched table of a view."""
    victim.run(
        "select seapost.projection_register_v2('view', '1', '{}', '{}', '{public}', '{view}', 'c@view@1', 'ann')"
    )
    victim.rest()
    victim.run("create table public.view (n int)")
    victim.run("select seapost.completeness_watch_v1('view', '1')")
    victim.run("grant insert on public.view to seapost_consumer")
    victim.become("consumer")
    victim.run("select from seapost.projection_meet_v2('view', '1', null, '{}', '{}', '{}', '{}')")
    victim.run("insert into public.view values (1)")


def _call_the_rest(victim: _Victim, path: str) -> set[int]:
    """Call every definer function that the daily work left out, as each role that may; those that began."""
    functions = rights.functions(victim.connection)  # with types spelled so that this path finds the server's
    victim.take(SAFE)
    called = _called(victim)
    for one in functions:
        for role in CALLERS:
            if one.oid in called or not victim.value(
                "select pg_catalog.has_function_privilege(%s, %s::oid, 'execute')", role, one.oid
            ):
                continue
            victim.become(role.removeprefix("seapost_"))
            try:
                with victim.connection.transaction():
                    victim.take(path)
                    victim.connection.execute(one.call())
            except psycopg.Error as error:
                # What raised is not counted by the server; but the error tells where it was raised.
                if f"{one.name}(" in (error.diag.context or ""):
                    called.add(one.oid)
            victim.rest()
            victim.take(SAFE)
    return called | _called(victim)


def _called(victim: _Victim) -> set[int]:
    found = victim.rows("select f.funcid from pg_catalog.pg_stat_xact_user_functions as f where f.calls > 0")
    return {int(row[0]) for row in found}


@pytest.mark.req("SEC-01", "SEC-03", "SEC-04")
@pytest.mark.parametrize("path", traps.PATHS)
def test_no_definer_function_steps_into_a_trap(victim: _Victim, path: LiteralString) -> None:
    """Shadowed functions, operators, types, tables, ahead in the path or temporary, are never touched as the owner."""
    set_ = traps.set_traps(victim.connection)
    assert set_.count > 300
    with _hostile(victim, path):
        _work(victim)
        victim.rest()
        called = _call_the_rest(victim, path)
    looker = victim.connection.info.user  # the test's own questions are put as the superuser
    assert set_.by_others_than(*CALLERS, looker) == set()
    assert [name for oid, name in victim.rows(DEFINERS) if oid not in called] == []


@pytest.mark.parametrize("path", traps.PATHS)
def test_the_traps_spring(victim: _Victim, path: LiteralString) -> None:
    """Without its search path, a definer function does step in: the test above would see it."""
    victim.connection.execute("alter function seapost.delivery_set_register_v1 reset search_path")
    set_ = traps.set_traps(victim.connection)
    with _hostile(victim, path):
        victim.become("operator")
        with suppress(psycopg.Error), victim.connection.transaction():
            victim.route()
    assert {who for who, _ in set_.by_others_than(*CALLERS)} == {"seapost_owner"}


@pytest.mark.req("SEC-01")
def test_a_cast_of_a_callers_own_type_runs_as_the_caller(victim: _Victim) -> None:
    """An argument of a custom type is turned into text before the function begins, with the caller's rights."""
    set_ = traps.set_traps(victim.connection)
    victim.become("dispatcher")
    victim.run("select seapost.dispatcher_sleep_v1(row('x')::attack.evil)")
    assert set_.sprung == {("seapost_dispatcher", "cast")}


@pytest.mark.req("SEC-01")
def test_no_function_takes_or_gives_a_polymorphic_type(victim: _Victim) -> None:
    """A caller cannot bring a type with operators of his own into a body: no argument and no result is polymorphic."""
    assert (
        victim.rows(
            "select p.proname from pg_catalog.pg_proc as p where p.pronamespace = 'seapost'::regnamespace"
            " and exists (select from pg_catalog.pg_type as t where t.typtype = 'p' and t.typname like 'any%%'"
            " and t.oid = any(pg_catalog.array_append(p.proargtypes::pg_catalog.oid[], p.prorettype)))"
        )
        == []
    )


@pytest.mark.req("SEC-01", "SEC-04")
def test_every_definer_function_is_closed(victim: _Victim) -> None:
    """It looks in pg_catalog first and the temporary schema last, its owner cannot log in, PUBLIC may not run it."""
    functions = victim.rows(
        "select p.proname, p.proconfig, r.rolname, r.rolcanlogin or r.rolsuper,"
        " pg_catalog.has_function_privilege('seapost_test_caller', p.oid, 'execute')"
        " from pg_catalog.pg_proc as p join pg_catalog.pg_roles as r on r.oid = p.proowner"
        " where p.pronamespace = 'seapost'::regnamespace and p.prosecdef"
    )
    assert len(functions) >= 20
    for name, settings, owner, is_powerful, is_public in functions:
        assert "search_path=pg_catalog, pg_temp" in settings, name
        assert (owner, is_powerful, is_public) == ("seapost_owner", False, False), name
