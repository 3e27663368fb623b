"""The installer brings a database to a release, once, and says beforehand what it will do."""

from __future__ import annotations

import psycopg
import pytest

from seapost.database.installer import GuardLevel, OnDirty, check_schema, check_schema_async, migrate
from seapost.model.errors import InvalidSetting, MigrationChanged, MigrationDirty, SchemaMissing, SchemaNewer
from tests.kit.database import TestDatabase, assert_places
from tests.kit.sql_files import SqlFiles

EXPLODES_ONCE = """-- transaction: off
insert into fake.thing values (1);
do $$ begin if not exists (select from fake.thing where id = 99) then raise exception 'half-way'; end if; end $$;
"""


def _recorded(database: TestDatabase) -> list[tuple[int, str, bool]]:
    with psycopg.connect(database.dsn) as connection:
        return connection.execute(
            "select number, phase, finished_at is not null from fake.schema_migration order by number, phase desc"
        ).fetchall()


def test_the_packaged_schema_installs_twice(empty_database: TestDatabase) -> None:
    """A fresh install ends current, with every invariant kept; a second run finds nothing to do."""
    first = migrate(empty_database.dsn)
    assert first.changed
    assert first.number_before == 0
    assert first.number_after > 0
    assert first.guard_level == GuardLevel.LEAN
    second = migrate(empty_database.dsn)
    assert not second.changed
    assert second.plan.is_empty
    with psycopg.connect(empty_database.dsn) as connection:
        check_schema(connection)
        assert_places(connection)


def test_everything_belongs_to_the_owner_role(database: TestDatabase) -> None:
    """Tables, views and functions of the schema are owned by the NOLOGIN role, whoever installed them."""
    connection = database.connect()
    owners = connection.execute(
        """
        select c.relowner::regrole::text from pg_class as c where c.relnamespace = 'seapost'::regnamespace
        union select p.proowner::regrole::text from pg_proc as p where p.pronamespace = 'seapost'::regnamespace
        union select n.nspowner::regrole::text from pg_namespace as n where n.nspname = 'seapost'"""
    ).fetchall()
    assert owners == [("seapost_owner",)]
    login = connection.execute("select rolcanlogin from pg_roles where rolname = 'seapost_owner'").fetchone()
    assert login == (False,)


def test_public_may_execute_nothing(database: TestDatabase) -> None:
    """No function of the schema is executable by PUBLIC."""
    connection = database.connect()
    open_functions = connection.execute(
        "select p.proname from pg_proc as p where p.pronamespace = 'seapost'::regnamespace"
        " and (p.proacl is null or exists (select from aclexplode(p.proacl) as a where a.grantee = 0))"
    ).fetchall()
    assert open_functions == []


@pytest.mark.parametrize("role", ["producer", "dispatcher", "consumer", "operator", "auditor"])
def test_every_role_may_check_the_schema(database: TestDatabase, role: str) -> None:
    """The start-up check needs no more rights than a runtime role has."""
    check_schema(database.connect(role))


async def test_the_check_has_an_asynchronous_twin(database: TestDatabase, empty_database: TestDatabase) -> None:
    """A dispatcher asks on its own asynchronous connection and gets the same answer."""
    await check_schema_async(await database.connect_async("dispatcher"))
    with pytest.raises(SchemaMissing):
        await check_schema_async(await empty_database.connect_async())


def test_guard_levels_switch_both_ways(empty_database: TestDatabase) -> None:
    """Asking for a guard level sets it, asking again changes nothing, and None leaves it."""
    assert migrate(empty_database.dsn, guards="strict").guard_level == GuardLevel.STRICT
    assert not migrate(empty_database.dsn, guards="strict").changed
    assert migrate(empty_database.dsn).guard_level == GuardLevel.STRICT
    lean = migrate(empty_database.dsn, guards=GuardLevel.LEAN)
    assert lean.changed
    assert lean.guard_level == GuardLevel.LEAN


def test_a_wrong_choice_is_refused(empty_database: TestDatabase) -> None:
    """A guard level or dirty choice that does not exist is named before anything happens."""
    with pytest.raises(InvalidSetting, match="lean, strict"):
        migrate(empty_database.dsn, guards="medium")
    with pytest.raises(InvalidSetting, match="refuse, again, done"):
        migrate(empty_database.dsn, on_dirty="force")
    with pytest.raises(InvalidSetting, match="lock timeout"):
        migrate(empty_database.dsn, lock_timeout_seconds=0)


def test_a_dry_run_prints_and_changes_nothing(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """The plan shows each step's SQL and locks; afterwards the database is as it was, down to the schema."""
    report = migrate(empty_database.dsn, tree=sql_files.tree, dry_run=True)
    text = report.to_text()
    assert "create table fake.thing (id int primary key, note text);" in text
    assert "migration 0001_first.pre" in text
    assert "lock: none on existing objects: create table fake.thing" in text
    assert not report.changed
    with psycopg.connect(empty_database.dsn) as connection:
        assert connection.execute("select from pg_namespace where nspname = 'fake'").fetchone() is None


def test_a_later_release_brings_only_what_is_new(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """An upgrade applies the new migration and the changed function, and shows the lock the old table needs."""
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.write("migrations/0002_more.pre.sql", "alter table fake.thing add column more int;\n")
    sql_files.write(
        "functions/thing/count_v1.sql",
        "create or replace function fake.thing_count_v1() returns bigint language sql\n"
        "as $$ select count(more) from fake.thing $$;\n",
    )
    plan = migrate(empty_database.dsn, tree=sql_files.tree, dry_run=True).plan
    assert [step.title for step in plan.steps()] == ["migration 0002_more.pre", "function thing_count_v1"]
    assert next(one.lock for step in plan.steps() for one in step.statements) == "ACCESS EXCLUSIVE"
    report = migrate(empty_database.dsn, tree=sql_files.tree)
    assert (report.number_before, report.number_after) == (1, 2)


def test_views_are_rebuilt_with_those_that_depend_on_them(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """A view whose columns changed is replaced together with the view over it, and grants are given anew."""
    sql_files.write("views/a_top.sql", "create view fake.a_top as select b.id from fake.b_base as b;\n")
    sql_files.write("views/b_base.sql", "create view fake.b_base as select t.id from fake.thing as t;\n")
    sql_files.write("privileges/reader.sql", "grant select on fake.a_top to public;\n")
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.write("views/b_base.sql", "create view fake.b_base as select t.note, t.id from fake.thing as t;\n")
    plan = migrate(empty_database.dsn, tree=sql_files.tree).plan
    assert plan.objects.dropped_views == ("a_top", "b_base")
    with psycopg.connect(empty_database.dsn) as connection:
        row = connection.execute("select has_table_privilege('public', 'fake.a_top', 'select')").fetchone()
    assert row == (True,)


def test_an_object_that_a_migration_drops_is_made_again(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """A migration may drop a view that stands in its way; the unchanged view file is applied again."""
    sql_files.write("views/things.sql", "create view fake.things as select t.id, t.note from fake.thing as t;\n")
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.write(
        "migrations/0002_wider.pre.sql",
        "drop view fake.things;\nalter table fake.thing alter column note type varchar(10);\n",
    )
    migrate(empty_database.dsn, tree=sql_files.tree)
    with psycopg.connect(empty_database.dsn) as connection:
        connection.execute("select id from fake.things")
    assert migrate(empty_database.dsn, tree=sql_files.tree).plan.is_empty


def test_post_migrations_wait_to_be_asked(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """On a database in use, a post migration runs only on request; a fresh database takes it at once."""
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.write("migrations/0002_tidy.post.sql", "alter table fake.thing drop column note;\n")
    report = migrate(empty_database.dsn, tree=sql_files.tree)
    assert report.plan.post_pending == ("0002_tidy.post",)
    assert not report.changed
    assert migrate(empty_database.dsn, tree=sql_files.tree, post=True).changed
    assert _recorded(empty_database) == [(1, "pre", True), (2, "post", True)]


@pytest.mark.req("F62")
def test_a_newer_schema_is_refused(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """An older release neither migrates a newer database nor starts on it, and says why."""
    sql_files.write("migrations/0002_more.pre.sql", "alter table fake.thing add column more int;\n")
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.remove("migrations/0002_more.pre.sql")
    with pytest.raises(SchemaNewer, match="newer release"):
        migrate(empty_database.dsn, tree=sql_files.tree)
    with psycopg.connect(empty_database.dsn) as connection, pytest.raises(SchemaNewer):
        check_schema(connection, tree=sql_files.tree)


def test_an_edited_migration_is_refused(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """A released migration with other content or another name is refused and named."""
    migrate(empty_database.dsn, tree=sql_files.tree)
    original = (sql_files.root / "migrations/0001_first.pre.sql").read_text()
    sql_files.write("migrations/0001_first.pre.sql", original + "-- edited\n")
    with pytest.raises(MigrationChanged, match=r"0001_first\.pre"):
        migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.remove("migrations/0001_first.pre.sql")
    sql_files.write("migrations/0001_other.pre.sql", original)
    with pytest.raises(MigrationChanged, match=r"0001_other\.pre"):
        migrate(empty_database.dsn, tree=sql_files.tree)


def test_line_ends_of_a_checkout_do_not_matter(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """The same files with CRLF line ends are the same release."""
    migrate(empty_database.dsn, tree=sql_files.tree)
    for file in sql_files.root.rglob("*.sql"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert migrate(empty_database.dsn, tree=sql_files.tree).plan.is_empty


def test_a_broken_migration_leaves_nothing(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """A mistake in the last file undoes the whole run and is reported with its file and line."""
    sql_files.write("migrations/0002_bad.pre.sql", "select 1;\nselect nonsense;\n")
    with pytest.raises(psycopg.errors.UndefinedColumn) as caught:
        migrate(empty_database.dsn, tree=sql_files.tree)
    assert caught.value.__notes__ == ["in 0002_bad.pre, line 2"]
    with psycopg.connect(empty_database.dsn) as connection:
        assert connection.execute("select from pg_namespace where nspname = 'fake'").fetchone() is None


def test_a_function_body_is_checked(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """A body that names what does not exist is refused, though functions may name each other in any order."""
    sql_files.write(
        "functions/a/early_v1.sql",
        "create or replace function fake.a_early_v1() returns bigint language sql\n"
        "as $$ select fake.thing_count_v1() $$;\n",
    )
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.write(
        "functions/a/late_v1.sql",
        "create or replace function fake.a_late_v1() returns int language sql as $$ select no_such() $$;\n",
    )
    with pytest.raises(psycopg.errors.UndefinedFunction) as caught:
        migrate(empty_database.dsn, tree=sql_files.tree)
    assert caught.value.__notes__ == ["in function a_late_v1"]


def test_a_migration_that_stopped_half_way_is_not_guessed_at(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """Outside a transaction a failure leaves a dirty marker; the next run refuses and says how to go on."""
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.write("migrations/0002_wide.pre.sql", EXPLODES_ONCE)
    with pytest.raises(psycopg.errors.RaiseException) as caught:
        migrate(empty_database.dsn, tree=sql_files.tree)
    assert caught.value.__notes__ == ["in 0002_wide.pre, statement 2"]
    assert _recorded(empty_database)[-1] == (2, "pre", False)
    with pytest.raises(MigrationDirty, match="--dirty again"):
        migrate(empty_database.dsn, tree=sql_files.tree)
    with psycopg.connect(empty_database.dsn) as connection, pytest.raises(SchemaMissing):
        check_schema(connection, tree=sql_files.tree)


def test_the_operator_says_how_a_dirty_migration_goes_on(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """`again` runs the file from its start, `done` only records that its work is complete."""
    migrate(empty_database.dsn, tree=sql_files.tree)
    sql_files.write("migrations/0002_wide.pre.sql", EXPLODES_ONCE)
    with pytest.raises(psycopg.errors.RaiseException):
        migrate(empty_database.dsn, tree=sql_files.tree)
    with pytest.raises(psycopg.errors.UniqueViolation):
        migrate(empty_database.dsn, tree=sql_files.tree, on_dirty=OnDirty.AGAIN)
    assert migrate(empty_database.dsn, tree=sql_files.tree, on_dirty="done").changed
    assert _recorded(empty_database)[-1] == (2, "pre", True)
    assert migrate(empty_database.dsn, tree=sql_files.tree).plan.is_empty


def test_history_cannot_be_rewritten(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """Not even the owner changes or deletes the record of a finished migration."""
    migrate(empty_database.dsn, tree=sql_files.tree)
    with psycopg.connect(empty_database.dsn, autocommit=True) as connection:
        for statement in ("update fake.schema_migration set checksum = checksum", "delete from fake.schema_migration"):
            with pytest.raises(psycopg.DatabaseError) as caught:
                connection.execute(statement)
            assert caught.value.sqlstate == "SP020"
