"""The specification as data: every requirement id with its text, and the list of ids in scope."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict, cast

ROOT = Path(__file__).resolve().parents[2]
SPECIFICATION = ROOT / "docs" / "spec" / "outbox.md"
SCOPE = ROOT / "docs" / "spec" / "scope.toml"

_ENTRY = re.compile(r"^- \*\*(?P<id>[A-Z]+-\d+)(?P<title>[^*]*)\*\*(?: \[\w+\])?(?: \{\w+\})? ?(?P<text>.*)$")


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


class _ScopeFile(TypedDict):
    claimed: dict[str, list[str]]
    review: dict[str, list[str]]
    later: dict[str, list[str]]
    cases: dict[str, str]


@cache
def _scope_file() -> _ScopeFile:
    return cast("_ScopeFile", tomllib.loads(SCOPE.read_text(encoding="utf-8")))


@cache
def load_specification() -> dict[str, str]:
    """Return every id with its text: the requirements of the specification and the field cases."""
    found: dict[str, str] = {}
    for line in SPECIFICATION.read_text(encoding="utf-8").splitlines():
        entry = _ENTRY.match(line)
        if entry is not None:
            title, text = entry["title"].strip(), entry["text"].strip()
            found[entry["id"]] = f"{title} {text}".strip()
    return found | _scope_file()["cases"]


@cache
def load_scope() -> Scope:
    """Return the scope; an id that stands in two lists, or twice in one, is a mistake and raises."""
    content = _scope_file()
    claimed = [requirement for group in content["claimed"].values() for requirement in group]
    review = {requirement: page for page, group in content["review"].items() for requirement in group}
    later = {requirement: reason for reason, group in content["later"].items() for requirement in group}
    listed = claimed + [entry for table in ("review", "later") for group in content[table].values() for entry in group]
    twice = sorted({requirement for requirement in listed if listed.count(requirement) > 1})
    if twice:
        raise ValueError(f"docs/spec/scope.toml lists {', '.join(twice)} more than once")
    return Scope(tuple(claimed), review, later)
