"""The SQL of gateway as a tree for the installer: schema `gateway`, in the database of gateway (GEN-07)."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from seapost.database.installer import SqlTree

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SCHEMA: Final = "gateway"
OWNER: Final = "oceanway_gateway_owner"


def gateway_tree(root: Traversable | None = None) -> SqlTree:
    """Return the packaged SQL of gateway, or the one below `root`: a test's shorter or damaged history."""
    packaged = files("oceanway").joinpath("gateway/sql") if root is None else root
    return SqlTree(packaged, SCHEMA, OWNER, stepwise=True)
