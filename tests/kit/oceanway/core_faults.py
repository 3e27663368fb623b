"""Faults inside an owner's transaction: a write that fails after it happened, or a check that fails at the commit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from psycopg import Connection

    from tests.kit.oceanway.database import TestDatabase

DEFERRED: Final = "at the deferred check of "
"""In front of a table's name: the fault happens at the commit, not after the write."""
APPENDED: Final = ("seapost.event", "seapost.delivery", "seapost.delivery_ready")
"""Where an event and its deliveries are written."""


FOREIGN_KEY: Final = "23503"
UNIQUE: Final = "23505"
RESTRICT: Final = "23001"
INJECTED: Final = "TX000"
"""The SQLSTATE of an injected fault."""


def sqlstate_of(connection: Connection[Any], action: Callable[[], object]) -> str | None:
    """Do something and commit it; how the database refused, or None. The session is free for the next transaction."""
    try:
        action()
        connection.commit()
    except psycopg.Error as error:
        connection.rollback()
        return error.sqlstate
    return None


@contextmanager
def failing(database: TestDatabase, place: str) -> Generator[None]:
    """Let each write of a table fail after it happened, or at the commit when `place` begins with `DEFERRED`."""
    table = sql.Identifier(*place.removeprefix(DEFERRED).split("."))
    connection = database.connect(autocommit=True)
    connection.execute("set lock_timeout = '5s'")
    connection.execute(
        "create function public.injected_fault() returns trigger language plpgsql as "
        "$$ begin raise exception using errcode = 'TX000', message = 'injected'; end $$"
    )
    form = (
        "create constraint trigger zz_injected after insert or update on {} deferrable initially deferred "
        "for each row execute function public.injected_fault()"
        if place.startswith(DEFERRED)
        else "create trigger zz_injected after insert or update on {} "
        "for each row execute function public.injected_fault()"
    )
    connection.execute(sql.SQL(form).format(table))
    try:
        yield
    finally:
        connection.execute(sql.SQL("drop trigger zz_injected on {}").format(table))
        connection.execute("drop function public.injected_fault()")
        connection.close()


def rows(connection: Connection[Any], schema: str) -> dict[str, int]:
    """How many rows each table of an owner and of the kernel holds, to compare before with after."""
    names = connection.execute(
        "select format('%%I.%%I', n.nspname, c.relname) from pg_class as c join pg_namespace as n "
        "on n.oid = c.relnamespace where c.relkind in ('r', 'p') and not c.relispartition "
        "and n.nspname in (%s, 'seapost') order by 1",
        (schema,),
    ).fetchall()
    counts = sql.SQL(" union all ").join(
        sql.SQL("select {}, count(*) from {}").format(name, sql.Identifier(*name.split("."))) for (name,) in names
    )
    found = connection.execute(counts).fetchall()
    connection.rollback()
    return dict(found)


def waiting_for(observer: Connection[Any], blocked: Connection[Any]) -> None:
    """Return when one session waits for a lock that another one holds."""
    process = blocked.info.backend_pid
    while True:
        row = observer.execute("select cardinality(pg_blocking_pids(%s)) > 0", (process,)).fetchone()
        observer.rollback()
        if row is not None and row[0]:
            return
