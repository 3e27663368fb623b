"""The installer: migrations, functions, views, privileges and roles, from files into a database."""

from __future__ import annotations

from seapost.database.installer.check import check_schema, check_schema_async
from seapost.database.installer.install import MigrationReport, migrate
from seapost.database.installer.plan import GuardLevel, OnDirty, Plan
from seapost.database.installer.tree import SqlTree, packaged_tree

__all__ = [
    "GuardLevel",
    "MigrationReport",
    "OnDirty",
    "Plan",
    "SqlTree",
    "check_schema",
    "check_schema_async",
    "migrate",
    "packaged_tree",
]
