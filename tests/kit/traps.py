# ruff: noqa: E501 - SQL that makes SQL reads better unbroken
"""Objects of an attacker that carry the names of the server's and of Seapost's own, and tell who touched them.

The schema `attack` and the session's temporary schema each get: every function of pg_catalog whose name occurs in a
body of ours; every operator of the types that we use; domains named like those types; tables named like all of ours,
with a trigger. Whatever is touched tells by a notice, which no rollback takes back, who the current user was: an
attacker wins when that is anybody but himself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, LiteralString

from psycopg import Connection
from psycopg.errors import Diagnostic

PATHS: Final[tuple[LiteralString, ...]] = (
    "attack, pg_catalog, seapost, pg_temp",
    "pg_temp, attack, pg_catalog",
    "attack, public",
)
"""Search paths under which names that nobody pinned would be found among the traps."""

_SET_UP: Final = """
set local search_path = pg_catalog;
create schema attack;
grant usage on schema attack to public;
create function attack.sprung(what pg_catalog.text) returns pg_catalog.bool language plpgsql as $trap$
begin
    raise notice 'sprung: % %', current_user, what;
    return true;
end $trap$;
create function attack.sprung_trigger() returns trigger language plpgsql as $trap$
begin
    perform attack.sprung('trigger');
    return new;
end $trap$;
create type attack.evil as (word pg_catalog.text);
create function attack.evil_word(attack.evil) returns pg_catalog.text language plpgsql as $trap$
begin
    perform attack.sprung('cast');
    return 'billing';
end $trap$;
create cast (attack.evil as pg_catalog.text) with function attack.evil_word(attack.evil) as implicit;"""

_FUNCTIONS: Final = """
do $do$
declare
    v_schema text;
    v_made record;
begin
    foreach v_schema in array array['attack', 'pg_temp'] loop
        for v_made in
            select distinct p.proname, oidvectortypes(p.proargtypes) as arguments, format_type(p.prorettype, null) as result
            from pg_proc as p
            where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind in ('f', 'a') and not p.proretset
              and p.provariadic = 0
              and p.proname in (select m.word[1] from pg_proc as s, regexp_matches(s.prosrc, '[a-z_][a-z0-9_]*', 'g') as m (word)
                                where s.pronamespace = 'seapost'::regnamespace)
              and not exists (select from pg_type as t where t.typtype = 'p' and t.oid = any(p.proargtypes || p.prorettype))
        loop
            execute format('create or replace function %s.%I(%s) returns %s language plpgsql as %L',
                v_schema, v_made.proname, v_made.arguments, v_made.result,
                format('begin perform attack.sprung(%L); return null; end', 'function ' || v_made.proname));
        end loop;
    end loop;
end $do$"""

_OPERATORS: Final = """
do $do$
declare
    v_schema text;
    v_made record;
begin
    foreach v_schema in array array['attack', 'pg_temp'] loop
        for v_made in
            select o.oid, o.oprname, o.oprleft::regtype as l, o.oprright::regtype as r, o.oprresult::regtype as result
            from pg_operator as o
            where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprkind = 'b'
              and o.oprleft = any(array['text', 'uuid', 'int4', 'int8', 'int2', 'bytea', 'jsonb', 'timestamptz',
                                        'interval', 'bool', 'name']::regtype[])
              and o.oprright = any(array['text', 'uuid', 'int4', 'int8', 'int2', 'bytea', 'jsonb', 'timestamptz',
                                         'interval', 'bool', 'name', 'text[]']::regtype[])
        loop
            execute format('create function %s.operator_%s(%s, %s) returns %s language plpgsql as %L', v_schema, v_made.oid,
                v_made.l, v_made.r, v_made.result,
                format('begin perform attack.sprung(%L); return null; end', 'operator ' || v_made.oprname));
            execute format('create operator %s.%s (leftarg = %s, rightarg = %s, function = %s.operator_%s)',
                v_schema, v_made.oprname, v_made.l, v_made.r, v_schema, v_made.oid);
        end loop;
    end loop;
end $do$"""

_TYPES_AND_TABLES: Final = """
do $do$
declare
    v_schema text;
    v_name text;
begin
    foreach v_schema in array array['attack', 'pg_temp'] loop
        foreach v_name in array array['text', 'uuid', 'int4', 'int8', 'bytea', 'jsonb', 'timestamptz', 'regclass', 'name'] loop
            execute format('create domain %s.%I as pg_catalog.%I check (attack.sprung(%L))',
                v_schema, v_name, v_name, 'type ' || v_name);
        end loop;
        for v_name in
            select c.relname from pg_class as c
            where c.relnamespace = 'seapost'::regnamespace and c.relkind in ('r', 'p', 'v')
        loop
            execute format('create table %s.%I (event_id pg_catalog.uuid, destination pg_catalog.text)', v_schema, v_name);
            execute format('grant all on %s.%I to public', v_schema, v_name);
            execute format('create trigger trap before insert or update or delete on %s.%I for each row'
                ' execute function attack.sprung_trigger()', v_schema, v_name);
        end loop;
    end loop;
end $do$"""


_COUNT: Final = """
select (select count(*) from pg_proc as p where p.pronamespace = 'attack'::regnamespace)
     + (select count(*) from pg_type as t where t.typnamespace = 'attack'::regnamespace)"""


@dataclass
class Traps:
    """The traps of one session, and who stepped into which."""

    count: int = 0
    sprung: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def by_others_than(self, *roles: str) -> set[tuple[str, str]]:
        """Who touched a trap and is none of these roles, and which trap it was."""
        return {(who, what) for who, what in self.sprung if who not in roles}


def set_traps(connection: Connection) -> Traps:
    """Make everything, as a superuser and in the caller's transaction."""
    traps = Traps()

    def note(diagnostic: Diagnostic) -> None:
        word, _, rest = (diagnostic.message_primary or "").partition(": ")
        if word == "sprung":
            who, _, what = rest.partition(" ")
            traps.sprung.add((who, what))

    connection.add_notice_handler(note)
    for statement in (_SET_UP, _FUNCTIONS, _OPERATORS, _TYPES_AND_TABLES):
        connection.execute(statement)
    row = connection.execute(_COUNT).fetchone()
    assert row is not None
    traps.count = int(row[0])
    traps.sprung.clear()
    return traps
