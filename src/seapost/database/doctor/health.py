"""What is wrong or unwise though nothing drifted: history, settings of the server, logins, default partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import psycopg

from seapost.database.doctor import access
from seapost.database.doctor.finding import Finding, FindingKind, drift
from seapost.database.doctor.snapshot import Partition, parameters_of
from seapost.database.installer.check import read_history_async
from seapost.database.installer.migrations import Phase
from seapost.database.installer.plan import refuse_changed, refuse_newer
from seapost.database.installer.server import SERVER_VERSION_MIN
from seapost.database.installer.tree import Shipment

if TYPE_CHECKING:
    from psycopg import AsyncConnection

LOCK_TABLE_SHARE_MAX: Final = 0.5
"""Part of the lock table that settling may need; the rest is for everybody else."""

# setting → (wrong values, how much that matters, what it means)
_WRONG: Final[Mapping[str, tuple[frozenset[str], FindingKind, str]]] = {
    "fsync": (frozenset({"off"}), FindingKind.WARNING, "a crash of the machine may lose or damage committed events"),
    "full_page_writes": (frozenset({"off"}), FindingKind.WARNING, "a crash of the machine may damage pages"),
    "synchronous_commit": (
        frozenset({"off"}),
        FindingKind.WARNING,
        "a crash may take back claims and acknowledgements that were already acted on",
    ),
    "autovacuum": (frozenset({"off"}), FindingKind.WARNING, "the moving tables grow without end"),
    "track_counts": (frozenset({"off"}), FindingKind.WARNING, "autovacuum does not know when to run"),
    "session_replication_role": (
        frozenset({"replica", "local"}),
        FindingKind.DEFECT,
        "the triggers of facts do not fire",
    ),
    "default_transaction_isolation": (
        frozenset({"repeatable read", "serializable"}),
        FindingKind.WARNING,
        "settling needs read committed and will be refused",
    ),
}


async def history_findings(connection: AsyncConnection, shipment: Shipment) -> list[Finding]:
    """Migrations that are missing, half done, or left for later.

    Raises:
        SchemaNewer, MigrationChanged: the database has another history, so there is nothing to compare with.
    """
    try:
        async with connection.transaction():
            state = await read_history_async(connection, shipment.tree)
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        return []  # the view is missing or another, which is told as drift
    except psycopg.errors.InsufficientPrivilege:
        return [Finding(FindingKind.UNSEEN, "migrations", "this role may not read which migrations were applied")]
    refuse_newer(shipment, state)
    refuse_changed(shipment, state)
    found: list[Finding] = []
    for one in shipment.migrations:
        applied = state.migrations.get(one.key)
        if applied is not None and applied.dirty:
            found.append(drift(f"migration {one.label}", "state", "finished", "half done"))
        elif applied is None and one.phase is Phase.PRE:
            found.append(drift(f"migration {one.label}", "state", "finished", "not applied; run `seapost migrate`"))
        elif applied is None:
            text = f"migration {one.label} is left; run `seapost migrate --post` when no older process runs"
            found.append(Finding(FindingKind.WARNING, f"migration {one.label}", text))
    return found


async def server_findings(
    connection: AsyncConnection, *, batch: int, dispatchers: int, behind_pooler: bool
) -> list[Finding]:
    """Settings of the server under which promises do not hold or work slows down.

    Args:
        batch: deliveries settled by one statement.
        dispatchers: dispatcher processes that work on this database.
    """
    found: list[Finding] = []
    version = connection.info.server_version
    if version < SERVER_VERSION_MIN:
        text = f"PostgreSQL {version // 10_000} is older than 15, the oldest that Seapost supports"
        found.append(Finding(FindingKind.DEFECT, "server", text))
    settings = {str(name): str(value) for name, value in await (await connection.execute(access.SERVER)).fetchall()}
    for name, (wrong, kind, meaning) in _WRONG.items():
        if (value := settings.get(name)) in wrong:
            found.append(Finding(kind, f"setting {name}", f"{name} is {value}: {meaning}"))
    if behind_pooler and settings.get("jit") == "on":
        text = "jit is on, and sessions behind a pooler cannot switch it off: set it for the login role"
        found.append(Finding(FindingKind.WARNING, "setting jit", text))
    found.extend(_lock_table(settings, batch * dispatchers))
    return found


def _lock_table(settings: Mapping[str, str], needed: int) -> Iterator[Finding]:
    """Settling takes one lock per event with several mandatory members; a full lock table fails everybody."""
    sessions = int(settings["max_connections"]) + int(settings["max_prepared_transactions"])
    slots = int(settings["max_locks_per_transaction"]) * sessions
    if needed > slots * LOCK_TABLE_SHARE_MAX:
        text = (
            f"the lock table has {slots} places and settling may need {needed} of them: "
            "raise max_locks_per_transaction or make batches smaller"
        )
        yield Finding(FindingKind.WARNING, "setting max_locks_per_transaction", text)


async def login_findings(connection: AsyncConnection, shipment: Shipment) -> list[Finding]:
    """Login roles that own what nobody should be able to log in as, or hold more than their work needs."""
    parameters = parameters_of(shipment)
    found: list[Finding] = []
    for name, count in await (await connection.execute(access.LOGIN_OWNERS, parameters)).fetchall():
        text = f"role {name} may log in and owns {count} objects of the schema"
        found.append(Finding(FindingKind.DEFECT, f"role {name}", text))
    for name, is_superuser, roles in await (await connection.execute(access.MEMBERS, parameters)).fetchall():
        if is_superuser:
            text = f"role {name}, a member of {', '.join(roles)}, is a superuser: no grant and no trigger holds it"
            found.append(Finding(FindingKind.WARNING, f"role {name}", text))
        elif shipment.tree.owner in roles and len(roles) > 1:
            works = ", ".join(one for one in roles if one != shipment.tree.owner)
            text = f"role {name} works as {works} and may become {shipment.tree.owner}"
            found.append(Finding(FindingKind.WARNING, f"role {name}", text))
    return found


def default_partition_findings(partitions: Mapping[str, tuple[Partition, ...]]) -> Iterator[Finding]:
    """Yield default partitions with pages: rows in there block the partition that they belong to."""
    for table, found in sorted(partitions.items()):
        for one in found:
            if one.is_default and one.size_bytes:
                text = f"the default partition of {table} holds {one.size_bytes} bytes: no partition fitted these rows"
                yield Finding(FindingKind.WARNING, f"partition {one.name}", text)
