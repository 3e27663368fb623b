"""SQL text is taken apart at the right semicolons, and each statement is printed with its lock."""

from __future__ import annotations

import pytest

from seapost.database.installer.statements import analyse, split


def test_semicolons_inside_quotes_and_comments_do_not_split() -> None:
    """Only a semicolon outside quotes, dollar quotes and comments ends a statement."""
    text = """
    -- one; not two
    select ';', E'\\';', "a;b" /* ; /* nested ; */ ; */;
    do $tag$ begin perform 1; perform $$ ; $$; end $tag$;
    select $1
    """
    found = list(split(text))
    assert len(found) == 3
    assert found[0].startswith("select ';'")
    assert found[1].endswith("end $tag$")
    assert found[2] == "select $1"


def test_nothing_is_no_statement() -> None:
    """Comments and empty statements alone yield nothing."""
    assert list(split("-- nothing\n;;\n/* still nothing */")) == []


@pytest.mark.parametrize(
    ("statement", "lock"),
    [
        ("alter table s.t add column c int", "ACCESS EXCLUSIVE"),
        ("alter table s.t validate constraint c", "SHARE UPDATE EXCLUSIVE"),
        ("alter table s.t set (fillfactor = 50)", "SHARE UPDATE EXCLUSIVE"),
        ("alter table s.t add constraint c foreign key (a) references s.u", "SHARE ROW EXCLUSIVE on both tables"),
        ("create index i on s.t (a)", "SHARE"),
        ("create unique index concurrently i on s.t (a)", "SHARE UPDATE EXCLUSIVE; waits for older transactions"),
        ("create trigger g before update on s.t for each row execute function s.f()", "SHARE ROW EXCLUSIVE"),
        ("create table s.t2 (a int references s.t)", "SHARE ROW EXCLUSIVE on the referenced table"),
        ("create table s.t2 partition of s.t for values in (1)", "ACCESS EXCLUSIVE on the parent"),
        ("create table s.t2 (a int)", "none on existing objects"),
        ("create or replace function s.f() returns int language sql as $$ select 1 $$", "none on existing objects"),
        ("create view s.v as select 1", "ACCESS SHARE on its tables"),
        ("drop view s.v", "ACCESS EXCLUSIVE"),
        ("update s.t set a = 1", "ROW EXCLUSIVE"),
        ("do $$ begin end $$", "decided inside the block"),
    ],
)
def test_locks(statement: str, lock: str) -> None:
    """The plan names the lock that PostgreSQL documents for the statement."""
    assert analyse(statement, set())[0].lock == lock


def test_a_table_of_the_plan_itself_is_not_waited_for() -> None:
    """A statement on a table that the same plan creates takes no lock that anybody else could hold."""
    found = analyse("create table s.t (a int); create index i on s.t (a); alter table s.t add column b int", set())
    assert {one.lock for one in found} == {"none on existing objects"}
