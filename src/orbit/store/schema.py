"""Orbit's SQL as a tree for the installer: schema `orbit`, stepwise migrations, roles of its own (MIG-19, MIG-20)."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from seapost.database.installer import SqlTree

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SCHEMA: Final = "orbit"
OWNER: Final = "orbit_owner"


def orbit_tree(root: Traversable | None = None) -> SqlTree:
    """Return the packaged SQL of Orbit, or the one below `root`: a test's shorter or damaged history."""
    return SqlTree(files("orbit").joinpath("sql") if root is None else root, SCHEMA, OWNER, stepwise=True)
