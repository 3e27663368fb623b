"""The manifest: what this release installs, as the catalogs show it; made by installing into a scratch database.

`sql/manifest.json` holds the objects at guard level lean and what strict adds or changes. It does not depend on the
server's major version. Partitions come and go, so one entry `partition event/*` stands for all of one table; so it is
with what functions make at run time, such as the gate of a destination that has a watermark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, cast

from seapost.database.doctor.snapshot import ANY_PARTITION, Objects, Parts, Snapshot
from seapost.database.installer.plan import GuardLevel
from seapost.model.errors import SeapostError

FILE: Final = "manifest.json"
_PREFIX: Final = "partition "
_MADE_AT_RUN_TIME: Final[Mapping[str, re.Pattern[str]]] = {
    "sequence backpressure_gate_*": re.compile(r"sequence backpressure_gate_[0-9]+"),
}
"""What a manifest calls a family of objects that functions make, and the names that belong to it."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What must be there at each guard level; `number` is the newest migration that it knows."""

    number: int
    objects: Mapping[GuardLevel, Objects]

    def expected(self, level: GuardLevel, snapshot: Snapshot) -> Objects:
        """The objects of one level, with as many partitions and objects of a family as the database has."""
        found: Objects = {}
        for name, parts in self.objects[level].items():
            table = _partitioned(name)
            if table is not None:
                found |= {f"{_PREFIX}{one.name}": parts for one in snapshot.partitions.get(table, ())}
            elif name in _MADE_AT_RUN_TIME:
                found |= {one: parts for one in snapshot.objects if _MADE_AT_RUN_TIME[name].fullmatch(one)}
            else:
                found[name] = parts
        return found


def _partitioned(name: str) -> str | None:
    if name.startswith(_PREFIX) and name.endswith(ANY_PARTITION):
        return name.removeprefix(_PREFIX).removesuffix(ANY_PARTITION)
    return None


def packaged_manifest() -> Manifest:
    """The manifest of this release."""
    return read_manifest(files("seapost").joinpath("sql").joinpath(FILE).read_text(encoding="utf-8"))


def read_manifest(text: str) -> Manifest:
    """The manifest in `text`, as `write_manifest` wrote it."""
    document = json.loads(text)
    lean = cast("Objects", document["lean"])
    strict = {name: dict(parts) for name, parts in lean.items()}
    for name, parts in cast("Objects", document["strict"]).items():
        strict.setdefault(name, {}).update(parts)
    return Manifest(document["number"], {GuardLevel.LEAN: lean, GuardLevel.STRICT: strict})


def write_manifest(number: int, snapshots: Mapping[GuardLevel, Snapshot]) -> str:
    """The text of a manifest, one part per line, so that a review reads what a change installs.

    Raises:
        SeapostError: strict lacks something that lean has, or the partitions of one table differ.
    """
    lean, strict = (_without_partitions(snapshots[level]) for level in (GuardLevel.LEAN, GuardLevel.STRICT))
    more: Objects = {}
    for name in lean.keys() | strict.keys():
        ours, theirs = lean.get(name, {}), strict.get(name, {})
        if gone := ours.keys() - theirs.keys():
            raise SeapostError(f"Guard level strict lacks {name} {min(gone)}, and the manifest has no form for that.")
        if changed := {part: properties for part, properties in theirs.items() if ours.get(part) != properties}:
            more[name] = changed
    return f'{{\n"number": {number},\n"lean": {_lines(lean)},\n"strict": {_lines(more)}\n}}\n'


def _without_partitions(snapshot: Snapshot) -> Objects:
    table_of = {f"{_PREFIX}{one.name}": table for table, found in snapshot.partitions.items() for one in found}
    objects: Objects = {}
    for name, parts in snapshot.objects.items():
        table = table_of.get(name)
        shown = _family(name) if table is None else f"{_PREFIX}{table}{ANY_PARTITION}"
        if objects.setdefault(shown, parts) != parts:
            raise SeapostError(f"All of {shown} must be alike, and {name} differs.")
    if absent := _MADE_AT_RUN_TIME.keys() - objects.keys():
        raise SeapostError(f"The database has no example of {min(absent)}.")
    return objects


def _family(name: str) -> str:
    return next((family for family, names in _MADE_AT_RUN_TIME.items() if names.fullmatch(name)), name)


def _lines(objects: Objects) -> str:
    return _block({name: _block(_parts(parts)) for name, parts in sorted(objects.items())})


def _parts(parts: Parts) -> dict[str, str]:
    return {name: json.dumps(properties, sort_keys=True) for name, properties in sorted(parts.items())}


def _block(values: Mapping[str, str]) -> str:
    return (
        "{\n" + ",\n".join(f"{json.dumps(name)}: {text}" for name, text in values.items()) + "\n}" if values else "{}"
    )
