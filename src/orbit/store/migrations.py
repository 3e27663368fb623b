"""What `orbit migrate` does: up, status, verify, resolve (MIG-08, MIG-19 to MIG-21, OPS-02).

The kernel's installer does the work; this room adds the refusal of active writers, the exit codes of the specification
and the comparison that an operator reads. Nothing here repairs a history.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import psycopg

from orbit.store.schema import orbit_tree
from seapost.database.installer import MigrationReport, SqlTree, check_schema_async, migrate
from seapost.database.installer.migrations import MigrationKey
from seapost.database.installer.objects import changes
from seapost.database.installer.plan import refuse_gap
from seapost.database.installer.resolve import Resolution
from seapost.database.installer.resolve import resolve as resolve_marker
from seapost.database.installer.state import read_as_owner
from seapost.database.installer.tree import Shipment, read_tree
from seapost.database.pool import part_dsn
from seapost.model.errors import (
    InvalidSetting,
    MigrationBlocked,
    MigrationChanged,
    MigrationDirty,
    SchemaMissing,
    SchemaNewer,
)

if TYPE_CHECKING:
    from seapost.database.installer.state import SchemaState

__all__ = ["MigrationStatus", "Resolution", "resolve", "schema_faults", "status", "up", "verify"]

EXIT_ACTIVE_WRITERS: Final = 3
EXIT_DIRTY: Final = 4
EXIT_HISTORY: Final = 5

_WRITERS: Final = """
select a.pid, a.application_name
from pg_catalog.pg_stat_activity as a
where a.datname = current_database() and a.pid <> pg_backend_pid() and starts_with(a.application_name, 'orbit-server')
order by a.pid
limit 10"""


class MigrationRefused(Exception):
    """`orbit migrate` refused to go on, or a step failed.

    Attributes:
        exit_code: what the command ends with.
    """

    exit_code: int = 1


class WritersActive(MigrationRefused):
    """Write nodes of Orbit are connected; stop them first (MIG-05, MIG-08)."""

    exit_code = EXIT_ACTIVE_WRITERS


class HistoryDirty(MigrationRefused):
    """A migration stopped half-way; an operator decides what is true (MIG-20)."""

    exit_code = EXIT_DIRTY


class HistoryDiffers(MigrationRefused):
    """A file was changed, a version is missing, or the database is newer (MIG-21)."""

    exit_code = EXIT_HISTORY


class StepFailed(MigrationRefused):
    """A migration failed in the database; it is marked as half-way."""


class MigrationState(StrEnum):
    """One migration in one database, compared with the files."""

    APPLIED = "applied"
    DIRTY = "dirty"
    PENDING = "pending"
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """One line of `orbit migrate status`; the checksum is the applied one, else that of the file."""

    version: int
    name: str
    state: MigrationState
    checksum: str


def up(dsn: str, *, allow_active_writers: bool = False, tree: SqlTree | None = None) -> MigrationReport:
    """Bring the database to this release, step by step; again changes nothing.

    Args:
        dsn: a direct connection of a member of the owner role, or a superuser.
        allow_active_writers: go on although connections of `orbit serve` exist.
        tree: other files than the packaged ones, for tests.

    Raises:
        WritersActive, HistoryDirty, HistoryDiffers: refused; nothing was changed.
        StepFailed: a migration failed; it is rolled back and marked, the ones before it stay.
        SeapostError: what the installer refuses for other reasons (locks, rights, the server's version).
    """
    tree = tree or orbit_tree()
    if not allow_active_writers:
        _refuse_writers(dsn)
    try:
        return migrate(dsn, tree=tree)
    except MigrationDirty as error:
        (dirty, *_) = [one for one in status(dsn, tree=tree) if one.state is MigrationState.DIRTY]
        raise HistoryDirty(_how_to_resolve(dirty)) from error
    except (MigrationChanged, SchemaNewer) as error:
        raise HistoryDiffers(str(error)) from error
    except (psycopg.Error, MigrationBlocked) as error:
        dirty = next((one for one in _status_if_reachable(dsn, tree) if one.state is MigrationState.DIRTY), None)
        if dirty is None:
            raise
        text = str(error).strip().partition("\n")[0].removesuffix(".")
        raise StepFailed(f"Migration {_label(dirty)} failed: {text}. {_how_to_resolve(dirty)}") from error


def status(dsn: str, *, tree: SqlTree | None = None) -> list[MigrationStatus]:
    """Every migration that the files or the database know, by version; only reads."""
    shipment = read_tree(tree or orbit_tree())
    state = _read(dsn, shipment)
    shipped = {one.key: one for one in shipment.migrations}
    found: list[MigrationStatus] = []
    for key in sorted(shipped.keys() | state.migrations.keys()):
        ours, applied = shipped.get(key), state.migrations.get(key)
        if applied is None:
            if ours is not None:
                found.append(MigrationStatus(key.number, ours.name, MigrationState.PENDING, ours.checksum))
            continue
        if applied.dirty:
            kind = MigrationState.DIRTY
        elif ours is None:
            kind = MigrationState.UNKNOWN
        else:
            same = (ours.name, ours.checksum) == (applied.name, applied.checksum)
            kind = MigrationState.APPLIED if same else MigrationState.CHANGED
        found.append(MigrationStatus(key.number, applied.name, kind, applied.checksum))
    return found


def verify(dsn: str, *, tree: SqlTree | None = None) -> list[str]:
    """What differs between the files and the database, one sentence each; empty when nothing does (OPS-02)."""
    shipment = read_tree(tree or orbit_tree())
    state = _read(dsn, shipment)
    faults = [
        f"migration {_label(one)} is {one.state}"
        for one in status(dsn, tree=shipment.tree)
        if one.state is not MigrationState.APPLIED
    ]
    try:
        refuse_gap(shipment, state)
    except MigrationChanged as error:
        faults.append(str(error))
    stale = changes(shipment.objects, recorded=state.recorded, existing=state.existing, schema=shipment.tree.schema)
    if state.migrations:
        faults.extend(f"the {one.label} is missing or not that of this release" for one in stale)
    return faults


def resolve(dsn: str, *, version: int, state: Resolution | str, reason: str, tree: SqlTree | None = None) -> None:
    """Settle the dirty marker of a migration and keep the reason (MIG-20).

    Raises:
        InvalidSetting: that version did not stop half-way here, or the state or the reason is not allowed.
    """
    try:
        decided = Resolution(state)
    except ValueError:
        raise InvalidSetting(f"The state is one of {', '.join(Resolution)}.") from None
    resolve_marker(dsn, tree or orbit_tree(), MigrationKey(version, 0), state=decided, reason=reason)


async def schema_faults(connection: psycopg.AsyncConnection[Any]) -> tuple[str, ...]:
    """Why this schema cannot be served; empty when it is the code's, with the same checksums and nothing dirty.

    Reads views only, so that the role of the server may ask as often as readiness does (OPS-05).
    """
    try:
        await check_schema_async(connection, tree=_packaged_shipment())
    except (SchemaMissing, SchemaNewer, MigrationChanged) as error:
        return (str(error),)
    return ()


@lru_cache(maxsize=1)
def _packaged_shipment() -> Shipment:
    return read_tree(orbit_tree())


def _refuse_writers(dsn: str) -> None:
    with psycopg.connect(part_dsn(dsn, "migrate", program="orbit"), autocommit=True) as connection:
        writers = connection.execute(_WRITERS).fetchall()
    if writers:
        shown = ", ".join(f"process {pid} ({name})" for pid, name in writers)
        raise WritersActive(
            f"Write nodes are connected: {shown}. Stop them first; old and new writers never run mixed."
        )


def _read(dsn: str, shipment: Shipment) -> SchemaState:
    with psycopg.connect(part_dsn(dsn, "migrate", program="orbit"), autocommit=True) as connection:
        connection.execute("set default_transaction_read_only = on")
        return read_as_owner(connection, shipment.tree, ())


def _status_if_reachable(dsn: str, tree: SqlTree) -> list[MigrationStatus]:
    try:
        return status(dsn, tree=tree)
    except psycopg.Error:
        return []


def _label(one: MigrationStatus) -> str:
    return f"{one.version:04d}_{one.name}"


def _how_to_resolve(dirty: MigrationStatus) -> str:
    return (
        f"Migration {_label(dirty)} is marked as half-way. Look at what it left, then run "
        f"`orbit migrate resolve --version {dirty.version} --state applied` or `--state reverted`, with `--reason`."
    )
