"""The specifications as data: every requirement id with its text, and the list of ids in scope.

Two specifications share the marks. The ids of the kernel (`docs/spec/outbox.md`) and the field cases stand
alone; those of Orbit (`docs/spec/subscriptions.md`, the tests of its section 28 among them) carry the prefix
`orbit:`, because both documents have, say, a `GEN-01`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict, cast

ROOT = Path(__file__).resolve().parents[2]
SPECIFICATION = ROOT / "docs" / "spec" / "outbox.md"
ORBIT_SPECIFICATION = ROOT / "docs" / "spec" / "subscriptions.md"
ORBIT = "orbit:"
SCOPE = ROOT / "docs" / "spec" / "scope.toml"

_ENTRY = re.compile(r"^- \*\*(?P<id>[A-Z]+-\d+)(?P<title>[^*]*)\*\*(?: \[\w+\])?(?: \{\w+\})? ?(?P<text>.*)$")
# A row of a table whose first cell is an id; `A-nn` are decisions on open points, not requirements.
_ORBIT_ROW = re.compile(
    r"^\| (?P<id>(?!A-)(?:T-)?[A-Z][A-Z0-9]*(?:-[0-9]+[a-z]?|[0-9]+)) \| (?P<text>.*?) \|", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Scope:
    """What this release claims.

    Attributes:
        claimed: ids that a passing test must prove.
        review: id to the page, relative to the repository, that explains how the design keeps it.
        later: id to the reason why its subject is not built yet.
    """

    claimed: tuple[str, ...]
    review: dict[str, str]
    later: dict[str, str]


class _Lists(TypedDict):
    claimed: dict[str, list[str]]
    review: dict[str, list[str]]
    later: dict[str, list[str]]


class _ScopeFile(_Lists):
    orbit: _Lists
    cases: dict[str, str]


@cache
def _scope_file() -> _ScopeFile:
    return cast("_ScopeFile", tomllib.loads(SCOPE.read_text(encoding="utf-8")))


@cache
def load_specification() -> dict[str, str]:
    """Return every id with its text: the requirements of both specifications and the field cases."""
    found: dict[str, str] = {}
    for line in SPECIFICATION.read_text(encoding="utf-8").splitlines():
        entry = _ENTRY.match(line)
        if entry is not None:
            title, text = entry["title"].strip(), entry["text"].strip()
            found[entry["id"]] = f"{title} {text}".strip()
    return found | _orbit_specification() | _scope_file()["cases"]


def _orbit_specification() -> dict[str, str]:
    rows = _ORBIT_ROW.finditer(ORBIT_SPECIFICATION.read_text(encoding="utf-8"))
    return {ORBIT + row["id"]: row["text"].strip() for row in rows}


@cache
def load_scope() -> Scope:
    """Return the scope of both; an id that stands in two lists, or twice in one, is a mistake and raises."""
    content = _scope_file()
    kernel, orbit = _read(content, ""), _read(content["orbit"], ORBIT)
    return Scope(kernel.claimed + orbit.claimed, kernel.review | orbit.review, kernel.later | orbit.later)


def _read(lists: _Lists, prefix: str) -> Scope:
    claimed = [prefix + name for group in lists["claimed"].values() for name in group]
    review = {prefix + name: page for page, group in lists["review"].items() for name in group}
    later = {prefix + name: reason for reason, group in lists["later"].items() for name in group}
    reviewed = [prefix + name for group in lists["review"].values() for name in group]
    listed = claimed + reviewed + [prefix + name for group in lists["later"].values() for name in group]
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice:
        raise ValueError(f"docs/spec/scope.toml lists {', '.join(twice)} more than once")
    return Scope(tuple(claimed), review, later)
