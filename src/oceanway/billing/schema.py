"""The SQL of billing as a tree for the installer: schema `billing`, in a database of its own (GEN-07)."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from seapost.database.installer import SqlTree

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SCHEMA: Final = "billing"
OWNER: Final = "oceanway_billing_owner"


def billing_tree(root: Traversable | None = None) -> SqlTree:
    """Return the packaged SQL of billing, or the one below `root`: a test's shorter or damaged history."""
    packaged = files("oceanway").joinpath("billing/sql") if root is None else root
    return SqlTree(packaged, SCHEMA, OWNER, stepwise=True)
