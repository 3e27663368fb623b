"""The SQL of core as a tree for the installer: schema `core`, in the database of core (GEN-07)."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from seapost.database.installer import SqlTree

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SCHEMA: Final = "core"
OWNER: Final = "oceanway_core_owner"


def core_tree(root: Traversable | None = None) -> SqlTree:
    """Return the packaged SQL of core, or the one below `root`: a test's shorter or damaged history."""
    packaged = files("oceanway").joinpath("core/sql") if root is None else root
    return SqlTree(packaged, SCHEMA, OWNER, stepwise=True)
