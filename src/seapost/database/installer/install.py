"""`migrate`: bring one database to this release, in one transaction where that is possible.

A direct session takes the installer's lock before it reads anything. Then: roles; the installer's own
tables; migrations; functions, views and privileges whose file changed; guards. Whatever goes wrong inside
the transaction leaves the old state; a file marked `-- transaction: off` runs between a dirty marker and
its end. Whoever holds a lock we need for longer than the lock timeout is named, and nothing is left half done.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeVar

import psycopg
from psycopg import Connection, sql

from seapost.database.installer import state as remembered
from seapost.database.installer.blockers import BlockerWatch, describe
from seapost.database.installer.lock import installer_lock
from seapost.database.installer.migrations import Migration
from seapost.database.installer.objects import ObjectKind, SqlObject, changes
from seapost.database.installer.plan import GuardLevel, OnDirty, Plan, make_plan
from seapost.database.installer.server import check_server, ensure_roles, take_ownership
from seapost.database.installer.state import SchemaState, execute_text, read_as_owner, read_state
from seapost.database.installer.statements import split
from seapost.database.installer.tree import SqlTree, packaged_tree, read_tree
from seapost.database.pool import NO_TIMEOUTS, configure_session, part_dsn, refuse_pooler
from seapost.model.errors import InvalidSetting, MigrationBlocked, SeapostError

LOCK_TIMEOUT_SECONDS: Final = 5.0
LOCK_TIMEOUT_SECONDS_MAX: Final = 3600
WAIT_SECONDS: Final = 600.0

ChoiceT = TypeVar("ChoiceT", GuardLevel, OnDirty)

_VALIDATE: Final = """
select case l.lanname
           when 'plpgsql' then plpgsql_validator(p.oid)
           when 'sql' then pg_catalog.fmgr_sql_validator(p.oid)
       end
from pg_catalog.pg_proc as p
join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
join pg_catalog.pg_language as l on l.oid = p.prolang
where n.nspname = %s and p.proname = %s and l.lanname in ('plpgsql', 'sql')"""


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What one run of `migrate` did, or would do.

    Attributes:
        plan: the steps; empty when the database was current already.
        dry_run: nothing was changed.
        waited: another installer ran first.
        number_before, number_after: newest migration before and after; 0 is none.
        guard_level: guard level of the database afterwards, None where the schema has none.
    """

    plan: Plan
    dry_run: bool
    waited: bool
    number_before: int
    number_after: int
    guard_level: str | None

    @property
    def changed(self) -> bool:
        """Whether this run changed the database."""
        return not self.dry_run and not self.plan.is_empty

    def to_text(self) -> str:
        """A report for a person: the plan for a dry run, one line per step otherwise."""
        if self.dry_run:
            return self.plan.to_text()
        if self.plan.is_empty:
            return f"schema is current at {self.number_after:04d}\n"
        lines = [f"applied {step.title}\n" for step in self.plan.steps()]
        lines.extend(f"left for `seapost migrate --post`: {label}\n" for label in self.plan.post_pending)
        return "".join(lines) + f"schema is at {self.number_after:04d}\n"

    def to_json(self) -> dict[str, object]:
        """The report for a program."""
        return {
            "changed": self.changed,
            "dryRun": self.dry_run,
            "waited": self.waited,
            "numberBefore": self.number_before,
            "numberAfter": self.number_after,
            "guardLevel": self.guard_level,
            "steps": [
                {"title": step.title, "locks": sorted({one.lock for one in step.statements})}
                for step in self.plan.steps()
            ],
            "postPending": list(self.plan.post_pending),
        }


def migrate(
    dsn: str,
    *,
    tree: SqlTree | None = None,
    dry_run: bool = False,
    post: bool = False,
    guards: GuardLevel | str | None = None,
    on_dirty: OnDirty | str = OnDirty.REFUSE,
    lock_timeout_seconds: float = LOCK_TIMEOUT_SECONDS,
    wait_seconds: float = WAIT_SECONDS,
) -> MigrationReport:
    """Bring the database behind `dsn` to this release; running it again changes nothing.

    Args:
        dsn: a direct connection; the user is a member of the owner role and may create schemas, or is a superuser.
        tree: SQL files to install; the kernel's own by default.
        dry_run: only compare; the session is read-only.
        post: also run what removes the leavings of the last release.
        guards: guard level to set, `lean` or `strict`; None leaves it.
        on_dirty: how to go on with a migration that stopped half-way: `refuse`, `again` or `done`.
        lock_timeout_seconds: longest wait for one lock; queries of others queue behind us that long.
        wait_seconds: longest wait for another installer.

    Raises:
        UnsupportedDatabase, SchemaNewer, MigrationChanged, MigrationDirty: refused, nothing was changed.
        MigrationBlocked: a lock was not free in time; the detail names who holds it.
    """
    level = _choice(GuardLevel, guards, "guards") if guards is not None else None
    dirty_choice = _choice(OnDirty, on_dirty, "on_dirty")
    if not 0 < lock_timeout_seconds <= LOCK_TIMEOUT_SECONDS_MAX:
        raise InvalidSetting(
            f"The lock timeout is above 0 and at most {LOCK_TIMEOUT_SECONDS_MAX} seconds, not {lock_timeout_seconds}."
        )
    shipment = read_tree(tree or packaged_tree())
    with connect_directly(dsn) as connection:
        check_server(connection)
        if dry_run:
            connection.execute("set default_transaction_read_only = on")
        with installer_lock(connection, shipment.tree.schema, wait_seconds=wait_seconds) as waited:
            state = read_as_owner(connection, shipment.tree, shipment.roles.names)
            plan = make_plan(shipment, state, post=post, guards=level, on_dirty=dirty_choice)
            after = state
            if not dry_run and not plan.is_empty:
                _Installation(dsn, connection, plan, lock_timeout_seconds).run(state)
                after = read_as_owner(connection, shipment.tree, shipment.roles.names)
    return MigrationReport(
        plan=plan,
        dry_run=dry_run,
        waited=waited,
        number_before=state.number,
        number_after=after.number,
        guard_level=after.guard_level,
    )


def _choice(kind: type[ChoiceT], value: str, name: str) -> ChoiceT:
    try:
        return kind(value)
    except ValueError:
        raise InvalidSetting(f"{name} is one of {', '.join(kind)}, not {value!r}.") from None


@contextmanager
def connect_directly(dsn: str) -> Generator[Connection]:
    """A direct session without time limits; only waiting for locks is limited, later."""
    with psycopg.connect(part_dsn(dsn, "migrate"), autocommit=True, prepare_threshold=None) as connection:
        row = connection.execute("select pg_catalog.pg_backend_pid()").fetchone()
        refuse_pooler(connection.info.backend_pid, -1 if row is None else int(row[0]))
        configure_session(connection, NO_TIMEOUTS)
        connection.execute("set client_min_messages = warning")
        yield connection


class _Installation:
    """One run: carries out a plan on a session that holds the installer's lock."""

    def __init__(self, dsn: str, connection: Connection, plan: Plan, lock_timeout_seconds: float) -> None:
        self._dsn = dsn
        self._connection = connection
        self._plan = plan
        self._shipment = plan.shipment
        self._tree = plan.shipment.tree
        self._lock_timeout_seconds = lock_timeout_seconds

    def run(self, state: SchemaState) -> None:
        """Apply the plan; every transaction either commits whole or leaves the state before it."""
        if self._plan.roles or state.missing_roles:
            ensure_roles(self._connection, self._shipment.roles, state.missing_roles)
        segments = _segments(self._plan.before, apart=self._tree.stepwise)
        for position, segment in enumerate(segments):
            if segment and not segment[0].transactional:
                for migration in segment:
                    self._run_outside(migration)
                continue
            if segment and self._tree.stepwise:
                for migration in segment:
                    self._run_step(migration)
                continue
            with self._transaction():
                if position == 0:
                    self._prepare()
                self._migrate(segment)
                if position == len(segments) - 1:
                    self._replace_objects()
        for migration in self._plan.after:
            self._run_after(migration)

    @contextmanager
    def _transaction(self) -> Generator[None]:
        with self._named_blockers(), self._connection.transaction():
            self._connection.execute("select set_config('lock_timeout', %s, true)", (self._lock_timeout(),))
            self._connection.execute("set local search_path = pg_catalog, pg_temp")
            self._connection.execute("set local check_function_bodies = off")
            take_ownership(self._connection, self._tree)
            yield

    @contextmanager
    def _named_blockers(self) -> Generator[None]:
        """Turn a lost wait for a lock into MigrationBlocked with the names of those in the way."""
        every_seconds = min(0.1, self._lock_timeout_seconds / 5)
        with BlockerWatch(self._dsn, self._connection.info.backend_pid, every_seconds=every_seconds) as watch:
            try:
                yield
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
                raise MigrationBlocked(
                    f"The migration gave up after waiting {self._lock_timeout_seconds:g} s for a lock; "
                    "what was begun is undone. Run it again when the blocking session has ended.",
                    detail=f"blocked by {describe(watch.last)}",
                ) from error

    def _lock_timeout(self) -> str:
        return f"{max(1, round(self._lock_timeout_seconds * 1000))}ms"

    def _prepare(self) -> None:
        """The installer's own tables, dirty markers settled by the operator, functions that migrations call."""
        if self._plan.bootstrap:
            execute_text(self._connection, remembered.bootstrap_text(self._tree), "bootstrap.sql")
            remembered.record_bootstrap(self._connection, self._tree)
        if self._plan.roles:
            remembered.record_roles(self._connection, self._tree, self._shipment.roles.checksum)
        for migration in self._plan.marked_done:
            remembered.record_migration(self._connection, self._tree, migration, finished=True)
        for one in self._plan.first_functions:
            execute_text(self._connection, one.text, one.label)
        remembered.record_objects(self._connection, self._tree, self._plan.first_functions)

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        for migration in migrations:
            execute_text(self._connection, migration.text, migration.label)
            remembered.record_migration(self._connection, self._tree, migration, finished=True)

    def _run_after(self, migration: Migration) -> None:
        if not migration.transactional:
            self._run_outside(migration)
        elif self._tree.stepwise:
            self._run_step(migration)
        else:
            with self._transaction():
                self._migrate((migration,))

    def _run_step(self, migration: Migration) -> None:
        """The dirty marker in a transaction of its own; then the file and the end of the marker, together or not."""
        with self._transaction():
            remembered.record_migration(self._connection, self._tree, migration, finished=False)
        with self._transaction():
            self._migrate((migration,))

    def _run_outside(self, migration: Migration) -> None:
        """Statement by statement between the dirty marker and its end, each with the lock timeout."""
        with self._transaction():
            remembered.record_migration(self._connection, self._tree, migration, finished=False)
        owner = sql.Identifier(self._tree.owner)
        self._connection.execute("select set_config('lock_timeout', %s, false)", (self._lock_timeout(),))
        self._connection.execute(sql.SQL("set role {}").format(owner))
        try:
            with self._named_blockers():
                for position, statement in enumerate(split(migration.text), start=1):
                    execute_text(self._connection, statement, f"{migration.label}, statement {position}")
        except MigrationBlocked as error:
            how = "run it again" if migration.repeatable else "the migration is marked as half-way"
            raise MigrationBlocked(
                f"Migration {migration.label}, which runs outside a transaction, gave up waiting for a lock; {how}.",
                detail=error.detail,
            ) from error
        finally:
            if not self._connection.closed:
                self._connection.execute("reset role")
                self._connection.execute("set lock_timeout = 0")
        with self._transaction():
            remembered.record_migration(self._connection, self._tree, migration, finished=True)

    def _replace_objects(self) -> None:
        """Replace what the files changed; compared anew, because migrations may have dropped objects."""
        state = read_state(self._connection, self._tree, ())
        todo = changes(
            self._shipment.objects,
            recorded=state.recorded,
            existing=state.existing,
            schema=self._tree.schema,
        )
        for name in todo.dropped_views:
            self._connection.execute(sql.SQL("drop view {}").format(sql.Identifier(self._tree.schema, name)))
        for one in (*todo.functions, *todo.created_views):
            execute_text(self._connection, one.text, one.label)
        self._validate((*self._plan.first_functions, *todo.functions))
        privileges = todo.privileges or self._plan.objects.privileges
        for one in privileges:
            execute_text(self._connection, one.text, one.label)
        remembered.record_objects(self._connection, self._tree, (*todo, *privileges))
        gone = set(state.recorded) - self._shipment.object_keys - state.existing
        remembered.forget_objects(self._connection, self._tree, gone)
        if self._plan.guards is not None:
            self._set_guards(self._plan.guards)

    def _validate(self, functions: Sequence[SqlObject]) -> None:
        """Check the bodies that were created unchecked, now that everything they may name is there."""
        self._connection.execute("set local check_function_bodies = on")
        for one in functions:
            try:
                self._connection.execute(_VALIDATE, (self._tree.schema, one.key.name))
            except psycopg.Error as error:
                error.add_note(f"in {one.label}")
                raise
            self._refuse_missing(one)
        self._connection.execute("set local check_function_bodies = off")

    def _refuse_missing(self, one: SqlObject) -> None:
        """A file that does not make what its name says is a mistake of the release."""
        row = self._connection.execute(
            "select exists (select from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n"
            " on n.oid = p.pronamespace where n.nspname = %s and p.proname = %s)",
            (self._tree.schema, one.key.name),
        ).fetchone()
        if one.key.kind is ObjectKind.FUNCTION and (row is None or not row[0]):
            raise SeapostError(f"The file of {one.label} does not create {self._tree.schema}.{one.key.name}.")

    def _set_guards(self, level: GuardLevel) -> None:
        function = sql.Identifier(self._tree.schema, "guards_set_v1")
        self._connection.execute(sql.SQL("select {}({})").format(function, sql.Literal(str(level))))


def _segments(migrations: Sequence[Migration], *, apart: bool) -> list[tuple[Migration, ...]]:
    """Neighbours that share a transaction and those that run outside one, in order.

    The first and the last share a transaction, though perhaps with nothing in it: the first prepares, the
    last replaces the objects. With `apart`, both have nothing in them: each migration is a step of its own.
    """
    if apart and migrations:
        return [(), *((migration,) for migration in migrations), ()]
    segments = [tuple(group) for _, group in groupby(migrations, key=lambda one: one.transactional)]
    if not segments or not segments[0][0].transactional:
        segments.insert(0, ())
    if segments[-1] and not segments[-1][0].transactional:
        segments.append(())
    return segments
