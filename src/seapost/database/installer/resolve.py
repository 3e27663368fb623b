"""An operator's decision about a migration of a stepwise tree that stopped half-way."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from seapost.database.installer import state as remembered
from seapost.database.installer.install import WAIT_SECONDS, connect_directly
from seapost.database.installer.lock import installer_lock
from seapost.database.installer.migrations import MigrationKey
from seapost.database.installer.server import check_server, take_ownership
from seapost.database.installer.tree import SqlTree
from seapost.model.errors import InvalidSetting

REASON_LENGTH_MAX: Final = 1000


class Resolution(StrEnum):
    """What is true of the database, as the operator found it."""

    APPLIED = "applied"
    REVERTED = "reverted"


def resolve(
    dsn: str,
    tree: SqlTree,
    key: MigrationKey,
    *,
    state: Resolution,
    reason: str,
    wait_seconds: float = WAIT_SECONDS,
) -> None:
    """Settle the dirty marker of one migration, and keep who decided so, when and why.

    `applied`: all of its work is there, so it counts as finished. `reverted`: nothing of it is left, so the next run
    begins it again. The installer repairs nothing by itself.

    Raises:
        InvalidSetting: the migration is not half-way here, the reason is missing or longer than 1000 characters, or
            the tree is not stepwise.
        MigrationBlocked: another installer did not end in time.
    """
    if not tree.stepwise:
        raise InvalidSetting("Only the migrations of a stepwise tree are resolved.")
    if not 1 <= len(reason.strip()) <= REASON_LENGTH_MAX:
        raise InvalidSetting(f"A reason of 1 to {REASON_LENGTH_MAX} characters is needed.")
    with connect_directly(dsn) as connection:
        check_server(connection)
        with installer_lock(connection, tree.schema, wait_seconds=wait_seconds):
            found = remembered.read_as_owner(connection, tree, ()).migrations.get(key)
            if found is None or not found.dirty:
                raise InvalidSetting(f"Migration {key.number:04d} did not stop half-way in this database.")
            with connection.transaction():
                take_ownership(connection, tree)
                remembered.record_resolution(connection, tree, key, state=str(state), reason=reason.strip())
