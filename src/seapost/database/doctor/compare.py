"""Two sets of objects side by side: what is missing, what is too much, what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from seapost.database.doctor.finding import MISSING, NOT_THERE, PRESENT, Finding, drift
from seapost.database.doctor.snapshot import Json, Objects, Partition, Parts, Properties


def compare(expected: Objects, found: Objects) -> Iterator[Finding]:
    """Yield every difference, by object; the parts of an object that is missing or too much are not told again."""
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            yield drift(name, "", PRESENT, MISSING)
        elif name not in expected:
            yield drift(name, "", NOT_THERE, PRESENT)
        else:
            yield from _parts(name, expected[name], found[name])


def _parts(name: str, expected: Parts, found: Parts) -> Iterator[Finding]:
    for part in sorted(expected.keys() | found.keys()):
        subject = f"{name}, {part}" if part else name
        if part not in found:
            yield drift(subject, "", PRESENT, MISSING)
        elif part not in expected:
            yield drift(subject, "", NOT_THERE, PRESENT)
        else:
            yield from _properties(subject, expected[part], found[part])


def _properties(subject: str, expected: Properties, found: Properties) -> Iterator[Finding]:
    for about in sorted(expected.keys() | found.keys()):
        ours, theirs = expected.get(about), found.get(about)
        if ours != theirs and not (about == "columns" and _told_by_column(ours, theirs)):
            yield drift(subject, about, ours, theirs)


def _told_by_column(expected: Json, found: Json) -> bool:
    """Whether two lists of columns differ by more than order, which each column's own finding tells."""
    return isinstance(expected, list) and isinstance(found, list) and set(map(str, expected)) != set(map(str, found))


def partition_findings(partitions: Mapping[str, tuple[Partition, ...]]) -> Iterator[Finding]:
    """Yield partitioned tables that cannot take rows: without any partition, or with a gap between two."""
    for table, found in sorted(partitions.items()):
        if not found:
            yield drift(f"table {table}", "partitions", "at least one", "none")
        for one in found:
            if one.detaching:
                yield drift(f"partition {one.name}", "", NOT_THERE, "half detached")
        if any(one.is_default for one in found):
            continue
        ranges = sorted(_range(one.bound) for one in found)
        for (_, end), (start, _) in pairwise(ranges):
            if end != start:
                yield drift(f"table {table}", "partitions", "without a gap", f"nothing from {end[1]} to {start[1]}")


Bound = tuple[int, str]
"""An end of a range that sorts as PostgreSQL sorts a uuid: MINVALUE, then the hexadecimal text, then MAXVALUE."""


def _range(bound: str) -> tuple[Bound, Bound]:
    """The two ends in `FOR VALUES FROM (…) TO (…)`."""
    low, _, high = bound.removeprefix("FOR VALUES FROM (").removesuffix(")").partition(") TO (")
    return _end(low), _end(high)


def _end(text: str) -> Bound:
    return {"MINVALUE": -1, "MAXVALUE": 1}.get(text, 0), text.strip("'")
