"""Functions, views and privileges: current truth, one per file, replaced when the file changed.

Folder and file are the name: `functions/delivery/claim_v1.sql` is `delivery_claim_v1`. Functions are
created unchecked and validated together at the end, so their order among each other is free; views are
created in the order in which they name each other, after the functions they may call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources.abc import Traversable
from typing import Final

from seapost.database.installer.migrations import checksum_of, read_sql

FIRST_AREAS: Final = ("guard", "clock", "contracts")
"""Areas that migrations may call in triggers, defaults and constraints; missing ones are created before them."""
_FILE_NAME: Final = re.compile(r"([a-z][a-z0-9_]*)\.sql")


class ObjectKind(StrEnum):
    """The three shelves of replaceable files."""

    FUNCTION = "function"
    VIEW = "view"
    PRIVILEGE = "privilege"


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """What names a replaceable object inside its schema."""

    kind: ObjectKind
    name: str


@dataclass(frozen=True, slots=True)
class SqlObject:
    """One replaceable file."""

    key: ObjectKey
    area: str
    text: str
    checksum: str

    @property
    def label(self) -> str:
        """Kind and name, for reports and errors."""
        return f"{self.key.kind} {self.key.name}"

    @property
    def comes_first(self) -> bool:
        """Whether migrations may need this function."""
        return self.area in FIRST_AREAS


@dataclass(frozen=True, slots=True)
class ObjectChanges:
    """What must be done to the replaceable objects of one database.

    Attributes:
        dropped_views: names, dependents before what they depend on.
        created_views: changed and missing views and everything that was dropped with them, in order.
        privileges: all files when anything at all changes (a new view has no grants yet), else none.
    """

    functions: tuple[SqlObject, ...] = ()
    dropped_views: tuple[str, ...] = ()
    created_views: tuple[SqlObject, ...] = ()
    privileges: tuple[SqlObject, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether every object is current."""
        return not (self.functions or self.dropped_views or self.created_views or self.privileges)

    def __iter__(self) -> Iterator[SqlObject]:
        yield from self.functions
        yield from self.created_views
        yield from self.privileges


def discover_objects(root: Traversable, schema: str) -> tuple[SqlObject, ...]:
    """Read the replaceable files below `root` in the order in which they are applied.

    Raises:
        ValueError: a file name breaks the pattern, two files make one name, or views name each other in a circle.
    """
    functions: list[SqlObject] = []
    for area in _folders(root.joinpath("functions")):
        for file in _files(area):
            stem = _stem(file)
            functions.append(_read(file, ObjectKind.FUNCTION, f"{area.name}_{stem}", area.name))
    views = [_read(file, ObjectKind.VIEW, _stem(file), "views") for file in _files(root.joinpath("views"))]
    privileges = [
        _read(file, ObjectKind.PRIVILEGE, _stem(file), "privileges") for file in _files(root.joinpath("privileges"))
    ]
    functions.sort(key=lambda one: (_area_rank(one.area), one.area, one.key.name))
    found = (*functions, *in_dependency_order(views, schema), *privileges)
    seen: set[ObjectKey] = set()
    for one in found:
        if one.key in seen:
            raise ValueError(f"two files make the {one.label}")
        seen.add(one.key)
    return found


def changes(
    shipped: Sequence[SqlObject],
    *,
    recorded: Mapping[ObjectKey, str],
    existing: AbstractSet[ObjectKey],
    schema: str,
) -> ObjectChanges:
    """Compare the files with a database: `recorded` are checksums of what was applied, `existing` what is there."""

    def is_current(one: SqlObject) -> bool:
        is_there = one.key.kind is ObjectKind.PRIVILEGE or one.key in existing
        return is_there and recorded.get(one.key) == one.checksum

    stale = [one for one in shipped if not is_current(one)]
    if not stale:
        return ObjectChanges()
    views = [one for one in shipped if one.key.kind is ObjectKind.VIEW]
    rebuilt = _with_dependents({one.key.name for one in stale if one.key.kind is ObjectKind.VIEW}, views, schema)
    return ObjectChanges(
        functions=tuple(one for one in stale if one.key.kind is ObjectKind.FUNCTION),
        dropped_views=tuple(one.key.name for one in reversed(views) if one.key.name in rebuilt and one.key in existing),
        created_views=tuple(one for one in views if one.key.name in rebuilt),
        privileges=tuple(one for one in shipped if one.key.kind is ObjectKind.PRIVILEGE),
    )


def in_dependency_order(views: Iterable[SqlObject], schema: str) -> tuple[SqlObject, ...]:
    """Order views so that each follows the views it names; alphabetical where that leaves a choice."""
    remaining = {one.key.name: one for one in sorted(views, key=lambda one: one.key.name)}
    ordered: list[SqlObject] = []
    while remaining:
        free = [one for name, one in remaining.items() if not (_names(one, remaining, schema) - {name})]
        if not free:
            raise ValueError(f"the views {', '.join(remaining)} name each other in a circle")
        for one in free:
            ordered.append(one)
            del remaining[one.key.name]
    return tuple(ordered)


def _with_dependents(changed: set[str], views: Sequence[SqlObject], schema: str) -> set[str]:
    """The changed views and every view that names one of them; `views` are in dependency order."""
    rebuilt = set(changed)
    for one in views:
        if _names(one, rebuilt, schema):
            rebuilt.add(one.key.name)
    return rebuilt


def _names(view: SqlObject, candidates: Iterable[str], schema: str) -> set[str]:
    """The candidates that the text of `view` mentions with their schema."""
    mentioned = set(re.findall(rf"\b{re.escape(schema)}\.([a-z_][a-z0-9_]*)", view.text))
    return mentioned & set(candidates)


def _area_rank(area: str) -> int:
    return FIRST_AREAS.index(area) if area in FIRST_AREAS else len(FIRST_AREAS)


def _folders(folder: Traversable) -> list[Traversable]:
    if not folder.is_dir():
        return []
    return sorted((one for one in folder.iterdir() if one.is_dir()), key=lambda one: one.name)


def _files(folder: Traversable) -> list[Traversable]:
    if not folder.is_dir():
        return []
    return sorted((one for one in folder.iterdir() if one.name.endswith(".sql")), key=lambda one: one.name)


def _stem(file: Traversable) -> str:
    match = _FILE_NAME.fullmatch(file.name)
    if match is None:
        raise ValueError(f"{file.name} is not named like an SQL object: small letters, digits, underscores")
    return match.group(1)


def _read(file: Traversable, kind: ObjectKind, name: str, area: str) -> SqlObject:
    text = read_sql(file)
    return SqlObject(key=ObjectKey(kind, name), area=area, text=text, checksum=checksum_of(text))
