"""The examination: one transaction that reads the catalogs, compares them with the manifest, and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import sql

from seapost.database.doctor.activity import SNAPSHOT_SECONDS, activity_findings
from seapost.database.doctor.compare import compare, partition_findings
from seapost.database.doctor.finding import Examination, Finding, FindingKind, drift
from seapost.database.doctor.health import (
    default_partition_findings,
    history_findings,
    login_findings,
    server_findings,
)
from seapost.database.doctor.manifest import Manifest, packaged_manifest
from seapost.database.doctor.snapshot import Objects, Snapshot, read_snapshot, write_plainly
from seapost.database.doctor.views import view_findings
from seapost.database.installer.plan import GuardLevel
from seapost.database.installer.tree import Shipment, SqlTree, packaged_tree, read_tree
from seapost.model.errors import SchemaMissing

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_SCHEMA_EXISTS: Final = "select exists (select from pg_catalog.pg_namespace as n where n.nspname = %s)"


async def examine(
    connection: AsyncConnection,
    *,
    batch: int = 500,
    dispatchers: int = 1,
    behind_pooler: bool = False,
    snapshot_seconds: float = SNAPSHOT_SECONDS,
    manifest: Manifest | None = None,
) -> Examination:
    """Compare a database with this release and look at what surrounds it.

    Any role may ask; what it may not see is a finding of kind `unseen`. Everything happens in one transaction (or
    savepoint) that is rolled back.

    Args:
        batch: deliveries that a dispatcher settles by one statement.
        dispatchers: dispatcher processes on this database.
        behind_pooler: whether sessions go through a transaction-mode pooler.
        snapshot_seconds: age from which a snapshot that somebody holds is worth a warning.
        manifest: what to compare with; that of this release by default.

    Raises:
        SchemaMissing: there is no schema at all.
        SchemaNewer, MigrationChanged: the database has another history than this release.
    """
    shipment = read_tree(packaged_tree())
    wanted = manifest or packaged_manifest()
    findings: list[Finding] = []
    async with connection.transaction(force_rollback=True):
        await _refuse_missing(connection, shipment)
        await write_plainly(connection)
        findings += await history_findings(connection, shipment)
        recorded = await _guard_level(connection, shipment.tree, findings)
        snapshot = await read_snapshot(connection, shipment)
        level, expected, differences = _closest(wanted, snapshot, [recorded] if recorded else list(GuardLevel))
        findings += differences
        findings += partition_findings(snapshot.partitions)
        findings += [one async for one in view_findings(connection, shipment.tree, shipment.objects)]
        findings += await login_findings(connection, shipment)
        findings += await server_findings(connection, batch=batch, dispatchers=dispatchers, behind_pooler=behind_pooler)
        findings += await activity_findings(connection, snapshot_seconds=snapshot_seconds)
        findings += default_partition_findings(snapshot.partitions)
    return Examination(str(level), sum(map(len, expected.values())), findings)


async def _refuse_missing(connection: AsyncConnection, shipment: Shipment) -> None:
    row = await (await connection.execute(_SCHEMA_EXISTS, (shipment.tree.schema,))).fetchone()
    if row is None or not row[0]:
        raise SchemaMissing


async def _guard_level(connection: AsyncConnection, tree: SqlTree, findings: list[Finding]) -> GuardLevel | None:
    """The level that the database says it is at; None when it does not say, and a finding unless drift tells it."""
    query = sql.SQL("select level from {}").format(sql.Identifier(tree.schema, "guard_levels"))
    try:
        async with connection.transaction():
            row = await (await connection.execute(query)).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        text = "this role may not read the guard level; compared with the level that comes closest"
        findings.append(Finding(FindingKind.UNSEEN, "guard level", text))
        return None
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        return None  # the view is missing or another, which is told as drift
    level = None if row is None else str(row[0])
    if level in set(GuardLevel):
        return GuardLevel(level)
    findings.append(drift("guard level", "level", "lean or strict", level))
    return None


def _closest(
    manifest: Manifest, snapshot: Snapshot, levels: list[GuardLevel]
) -> tuple[GuardLevel, Objects, list[Finding]]:
    """The level among `levels` that differs least, what it expects, and its differences."""
    compared: list[tuple[GuardLevel, Objects, list[Finding]]] = []
    for level in levels:
        expected = manifest.expected(level, snapshot)
        compared.append((level, expected, list(compare(expected, snapshot.objects))))
    return min(compared, key=lambda one: len(one[2]))
