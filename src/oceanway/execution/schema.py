"""The SQL of execution as a tree for the installer: schema `execution`, in the database of execution (GEN-07)."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from seapost.database.installer import SqlTree

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SCHEMA: Final = "execution"
OWNER: Final = "oceanway_execution_owner"


def execution_tree(root: Traversable | None = None) -> SqlTree:
    """Return the packaged SQL of execution, or the one below `root`: a test's shorter or damaged history."""
    packaged = files("oceanway").joinpath("execution/sql") if root is None else root
    return SqlTree(packaged, SCHEMA, OWNER, stepwise=True)
