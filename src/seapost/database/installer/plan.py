"""The plan: what stands between a database and this release, printable before anything happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from seapost.database.installer.migrations import Migration, Phase
from seapost.database.installer.objects import ObjectChanges, SqlObject, changes
from seapost.database.installer.state import SchemaState, bootstrap_checksum, bootstrap_text
from seapost.database.installer.statements import Statement, analyse
from seapost.database.installer.tree import Shipment
from seapost.model.errors import MigrationChanged, MigrationDirty, SchemaNewer

HEADLINE_MAX: Final = 90


class GuardLevel(StrEnum):
    """How much the database itself proves at every write; recorded in the database."""

    LEAN = "lean"
    STRICT = "strict"


class OnDirty(StrEnum):
    """What to do with a migration that stopped half-way outside a transaction."""

    REFUSE = "refuse"
    AGAIN = "again"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One line of the plan: what it is, its SQL, and its statements with their locks."""

    title: str
    text: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one run does, in order.

    Attributes:
        roles, bootstrap: whether the roles file and the installer's own tables are applied.
        first_functions: missing functions that migrations may call; created before them.
        before, after: migrations before and after the objects; a fresh database takes all of them before.
        marked_done: dirty migrations that are only recorded as finished.
        guards: the guard level to set, None to leave it.
        post_pending: labels of post migrations that this run leaves for later.
    """

    shipment: Shipment
    number: int
    roles: bool
    bootstrap: bool
    first_functions: tuple[SqlObject, ...]
    before: tuple[Migration, ...]
    objects: ObjectChanges
    after: tuple[Migration, ...]
    marked_done: tuple[Migration, ...]
    guards: GuardLevel | None
    post_pending: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the database is as this release wants it (leaving post migrations that were not asked for)."""
        return not (
            self.roles
            or self.bootstrap
            or self.before
            or self.after
            or self.marked_done
            or self.guards
            or not self.objects.is_empty
        )

    def steps(self) -> Iterator[PlanStep]:
        """Every step in order; tables that the plan itself creates need no lock that anybody could hold."""
        tree = self.shipment.tree
        created: set[str] = set()
        if self.roles:
            yield _step("roles (once for the whole server)", self.shipment.roles.text, created)
        if self.bootstrap:
            create = f"create schema if not exists {tree.schema} authorization {tree.owner};\n"
            yield _step("schema", create + bootstrap_text(tree), created)
        for migration in self.marked_done:
            yield PlanStep(f"migration {migration.label}: recorded as finished, not run", "", ())
        yield from (_step(one.label, one.text, created) for one in self.first_functions)
        for migration in self.before:
            yield _migration_step(migration, created)
        for one in self.objects.functions:
            if one not in self.first_functions:
                yield _step(one.label, one.text, created)
        for name in self.objects.dropped_views:
            yield _step(f"view {name}: replaced", f"drop view {tree.schema}.{name};\n", created)
        yield from (_step(one.label, one.text, created) for one in self.objects.created_views)
        yield from (_step(one.label, one.text, created) for one in self.objects.privileges)
        if self.guards is not None:
            yield PlanStep(
                f"guards {self.guards}",
                f"select {tree.schema}.guards_set_v1('{self.guards}');\n",
                (Statement("select guards_set_v1", "decided inside the function"),),
            )
        for migration in self.after:
            yield _migration_step(migration, created)

    def to_text(self) -> str:
        """The plan as text: per step the locks, then the SQL; readable by psql, locks stand in comments."""
        if self.is_empty:
            return "-- nothing to do\n"
        parts: list[str] = []
        for step in self.steps():
            parts.append(f"-- {step.title}\n")
            parts.extend(f"--   lock: {one.lock}: {_headline(one.text)}\n" for one in step.statements)
            parts.append(step.text.strip() + "\n\n" if step.text else "\n")
        parts.extend(f"-- left for `seapost migrate --post`: {label}\n" for label in self.post_pending)
        return "".join(parts)


def make_plan(
    shipment: Shipment,
    state: SchemaState,
    *,
    post: bool,
    guards: GuardLevel | None,
    on_dirty: OnDirty,
) -> Plan:
    """Compare a release with a database.

    Raises:
        SchemaNewer: a newer release migrated the database.
        MigrationChanged: history in the database is not the history of this release.
        MigrationDirty: a migration stopped half-way and may not simply run again.
    """
    refuse_newer(shipment, state)
    refuse_changed(shipment, state)
    refuse_gap(shipment, state)
    dirty = _dirty(shipment, state, on_dirty)
    done = dirty if on_dirty is OnDirty.DONE else ()
    pending = [
        one for one in shipment.migrations if one not in done and (one.key not in state.migrations or one in dirty)
    ]
    wanted = [one for one in pending if one.phase is Phase.PRE or post or state.is_fresh]
    before = tuple(one for one in wanted if one.phase is Phase.PRE or state.is_fresh)
    objects = changes(shipment.objects, recorded=state.recorded, existing=state.existing, schema=shipment.tree.schema)
    return Plan(
        shipment=shipment,
        number=state.number,
        roles=bool(shipment.roles.text) and (bool(state.missing_roles) or state.roles != shipment.roles.checksum),
        bootstrap=state.bootstrap != bootstrap_checksum(shipment.tree),
        first_functions=tuple(one for one in objects.functions if one.comes_first and one.key not in state.existing),
        before=before,
        objects=objects,
        after=tuple(one for one in wanted if one not in before),
        marked_done=done,
        guards=guards if state.guard_level != guards else None,
        post_pending=tuple(one.label for one in pending if one not in wanted),
    )


def refuse_newer(shipment: Shipment, state: SchemaState) -> None:
    """Raise SchemaNewer when the database knows a migration beyond this release."""
    newer = [one for key, one in sorted(state.migrations.items()) if key.number > shipment.number]
    if newer:
        raise SchemaNewer(
            f"The database schema is at {newer[-1].label} of release {newer[-1].release}; this release knows "
            f"migrations up to {shipment.number:04d}. Use the newer release."
        )


def refuse_changed(shipment: Shipment, state: SchemaState) -> None:
    """Raise MigrationChanged when what was applied is not what this release ships."""
    shipped = {one.key: one for one in shipment.migrations}
    for key, applied in sorted(state.migrations.items()):
        ours = shipped.get(key)
        if applied.dirty:
            continue
        if ours is None:
            raise MigrationChanged(f"Migration {applied.label} was applied here, but this release does not ship it.")
        if ours.name != applied.name:
            raise MigrationChanged(f"Migration {applied.label} was applied here; this release ships {ours.label}.")
        if ours.checksum != applied.checksum:
            raise MigrationChanged(
                f"Migration {applied.label} was applied by release {applied.release} with other content than this "
                "release ships; released migrations are never edited."
            )


def refuse_gap(shipment: Shipment, state: SchemaState) -> None:
    """Raise MigrationChanged when a stepwise history, shipped or applied, is not one unbroken row of steps (MIG-21)."""
    if not shipment.tree.stepwise:
        return
    numbers = [one.number for one in shipment.migrations if one.phase is Phase.PRE]
    if numbers != list(range(1, len(numbers) + 1)):
        raise MigrationChanged("The migrations of this release have a gap in their versions.")
    earlier = [one for one in shipment.migrations if one.key not in state.migrations and one.phase is Phase.PRE]
    if earlier and earlier[0].number < state.number:
        raise MigrationChanged(
            f"Migration {earlier[0].label} is missing here, though {state.number:04d} was applied: there is a gap."
        )


def _dirty(shipment: Shipment, state: SchemaState, on_dirty: OnDirty) -> tuple[Migration, ...]:
    """The migrations that stopped half-way and go on now."""
    shipped = {one.key: one for one in shipment.migrations}
    found: list[Migration] = []
    for key, applied in sorted(state.migrations.items()):
        if not applied.dirty:
            continue
        ours = shipped.get(key)
        if ours is None or (on_dirty is OnDirty.REFUSE and not ours.repeatable):
            raise MigrationDirty(
                f"Migration {applied.label} of release {applied.release} stopped half-way. Look at what it left, then "
                "run `seapost migrate --dirty again` to run it again from its start, or "
                "`seapost migrate --dirty done` when its work is complete."
            )
        found.append(ours)
    return tuple(found)


def _step(title: str, text: str, created: set[str]) -> PlanStep:
    return PlanStep(title, text, analyse(text, created))


def _migration_step(migration: Migration, created: set[str]) -> PlanStep:
    how = "" if migration.transactional else " (outside a transaction)"
    return _step(f"migration {migration.label}{how}", migration.text, created)


def _headline(statement: str) -> str:
    line = " ".join(statement.split())
    return line if len(line) <= HEADLINE_MAX else line[: HEADLINE_MAX - 1] + "…"
