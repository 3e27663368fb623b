"""The SQL of operations as a tree for the installer: schema `operations`, in the database of the core (OPS-15)."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from seapost.database.installer import SqlTree

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SCHEMA: Final = "operations"
OWNER: Final = "oceanway_operations_owner"


def operations_tree(root: Traversable | None = None) -> SqlTree:
    """Return the packaged SQL of operations, or the one below `root`: a test's shorter or damaged history."""
    packaged = files("oceanway").joinpath("operations/sql") if root is None else root
    return SqlTree(packaged, SCHEMA, OWNER, stepwise=True)
