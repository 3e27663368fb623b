"""The SQL of metering as a tree for the installer: schema `metering`, in the database of metering (GEN-07)."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from seapost.database.installer import SqlTree

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SCHEMA: Final = "metering"
OWNER: Final = "oceanway_metering_owner"


def metering_tree(root: Traversable | None = None) -> SqlTree:
    """Return the packaged SQL of metering, or the one below `root`: a test's shorter or damaged history."""
    packaged = files("oceanway").joinpath("metering/sql") if root is None else root
    return SqlTree(packaged, SCHEMA, OWNER, stepwise=True)
