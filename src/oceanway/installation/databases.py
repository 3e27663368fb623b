"""One database of the installation: the kernel's schema with strict guards, and the schemas of its owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
from psycopg import conninfo

from oceanway.installation import store
from oceanway.installation.release import VERSION, activate_release, register_projections
from seapost.database.installer import GuardLevel, SqlTree, migrate
from seapost.database.pool import check_dsn

if TYPE_CHECKING:
    from seapost.model.delivery_set import ProjectionTarget
    from seapost.outbox.application import Application


@dataclass(frozen=True, slots=True)
class Installed:
    """What `install` did with one database."""

    database: str
    schemas: tuple[str, ...]
    migrated: bool
    activated: bool

    @property
    def changed(self) -> bool:
        """Whether anything was not already as it should be."""
        return self.migrated or self.activated


def install(
    dsn: str,
    trees: Sequence[SqlTree],
    application: Application | None,
    *,
    projections: Sequence[ProjectionTarget] = (),
    version: str = VERSION,
) -> Installed:
    """Bring one database to this release; running it again changes nothing.

    Args:
        dsn: a direct connection as a superuser or as a member of every owner role.
        trees: the schemas of the owners in this database, in order.
        application: the release to activate.
        projections: what the consumers of this database apply.

    Raises:
        SeapostError: as `seapost.database.installer.migrate` and `activate_release`.
    """
    reports = [migrate(dsn, guards=GuardLevel.STRICT), *(migrate(dsn, tree=tree) for tree in trees)]
    if application is not None:
        register_projections(dsn, application, projections)
    activated = application is not None and activate_release(dsn, application, version=version)
    return Installed(
        database=str(conninfo.conninfo_to_dict(dsn).get("dbname", "")),
        schemas=("seapost", *(tree.schema for tree in trees)),
        migrated=any(report.changed for report in reports),
        activated=activated,
    )


def ensure_database(server_dsn: str, name: str) -> str:
    """Make a database unless it is there, on the server that a superuser's `server_dsn` names; its own DSN."""
    with psycopg.connect(check_dsn(server_dsn), autocommit=True) as connection:
        if not store.database_exists(connection, name):
            store.create_database(connection, name)
    return named_dsn(server_dsn, name)


def named_dsn(dsn: str, name: str) -> str:
    """The connection string of another database on the same server."""
    parameters = conninfo.conninfo_to_dict(check_dsn(dsn))
    parameters["dbname"] = name
    return conninfo.make_conninfo("", **parameters)
