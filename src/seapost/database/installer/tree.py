"""A tree of SQL files and what it ships: the packaged one of the kernel, or one of an application."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from seapost.database.installer.migrations import Migration, checksum_of, discover_migrations, read_sql
from seapost.database.installer.objects import ObjectKey, SqlObject, discover_objects

_IDENTIFIER: Final = re.compile(r"[a-z][a-z0-9_]{0,40}")
_COMMENT: Final = re.compile(r"--[^\n]*")


@dataclass(frozen=True, slots=True)
class SqlTree:
    """Where SQL files lie, and which schema and NOLOGIN role own what they make.

    `root` holds `roles/roles.sql`, `migrations/`, `functions/<area>/`, `views/` and `privileges/`; each may
    be missing. Every name in the files carries its schema.

    Attributes:
        stepwise: each migration commits a dirty marker of its own first and then runs in one transaction that also
            ends it; one that stopped is refused until an operator decides (`resolve`). Else all share one transaction.
    """

    root: Traversable
    schema: str = "seapost"
    owner: str = "seapost_owner"
    stepwise: bool = False

    def __post_init__(self) -> None:
        for name in (self.schema, self.owner):
            if _IDENTIFIER.fullmatch(name) is None:
                raise ValueError(f"{name!r} is not a plain SQL identifier")


@dataclass(frozen=True, slots=True)
class Roles:
    """The cluster-wide roles file."""

    text: str
    checksum: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Shipment:
    """Everything a tree holds, read once."""

    tree: SqlTree
    roles: Roles
    migrations: tuple[Migration, ...]
    objects: tuple[SqlObject, ...]

    @property
    def number(self) -> int:
        """Number of the newest migration; 0 when there is none."""
        return max((one.number for one in self.migrations), default=0)

    @property
    def object_keys(self) -> frozenset[ObjectKey]:
        """What the replaceable objects are remembered by."""
        return frozenset(one.key for one in self.objects)


def packaged_tree() -> SqlTree:
    """The kernel's own SQL, as installed with the package."""
    return SqlTree(files("seapost").joinpath("sql"))


def read_tree(tree: SqlTree) -> Shipment:
    """Read every file of `tree`; a missing folder is an empty one."""
    return Shipment(
        tree=tree,
        roles=_read_roles(tree),
        migrations=discover_migrations(tree.root),
        objects=discover_objects(tree.root, tree.schema),
    )


def _read_roles(tree: SqlTree) -> Roles:
    file = tree.root.joinpath("roles").joinpath("roles.sql")
    text = read_sql(file) if file.is_file() else ""
    prefix = tree.owner.removesuffix("_owner")
    names = re.findall(rf"(?<![\w.]){re.escape(prefix)}_[a-z][a-z0-9_]*(?!\w|\s*\()", _COMMENT.sub("", text))
    return Roles(text=text, checksum=checksum_of(text), names=frozenset({*names, tree.owner}))
