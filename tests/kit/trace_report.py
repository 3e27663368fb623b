"""What a test run says about the requirements: the page for readers, and the list of broken claims."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from tests.kit.requirements import ORBIT, ROOT, Scope

SUMMARY_CHARACTERS_MAX = 150
FIELD_CASE = re.compile(r"F\d+")


class _Test(TypedDict):
    outcome: str
    req: list[str]


class _Result(TypedDict):
    exit: int
    tests: dict[str, _Test]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Per requirement the test functions that carry it, each with the outcomes of all its parameters."""

    outcomes: dict[str, dict[str, frozenset[str]]]

    @classmethod
    def read(cls, result: Path) -> Evidence:
        """Read the file that `--trace-json` wrote."""
        content = cast("_Result", json.loads(result.read_text(encoding="utf-8")))
        found: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for name, test in content["tests"].items():
            for requirement in test["req"]:
                found[requirement][name.split("[", 1)[0]].add(test["outcome"])
        return cls({key: {name: frozenset(seen) for name, seen in tests.items()} for key, tests in found.items()})

    def tests(self, requirement: str) -> dict[str, frozenset[str]]:
        """Return the tests that carry the id, with their outcomes."""
        return self.outcomes.get(requirement, {})

    def proves(self, requirement: str) -> bool:
        """Tell whether a test of this id passed and none failed; a skipped test proves nothing."""
        seen = [outcome for outcomes in self.tests(requirement).values() for outcome in outcomes]
        return "passed" in seen and "failed" not in seen


def problems(specification: dict[str, str], scope: Scope, evidence: Evidence) -> list[str]:
    """Return one sentence for every claim without proof and every contradiction."""
    listed = [*scope.claimed, *scope.review, *scope.later]
    found = [
        f"{requirement} is in scope.toml but not in the specification"
        for requirement in listed
        if requirement not in specification
    ]
    found += [
        f"{requirement} is used in a mark but not in the specification"
        for requirement in evidence.outcomes
        if requirement not in specification
    ]
    for requirement in scope.claimed:
        if not evidence.proves(requirement):
            found.append(f"{requirement} is claimed but {_missing(evidence.tests(requirement))}")
    found += [
        f"{requirement} is listed as later but a test proves it: claim it"
        for requirement in scope.later
        if evidence.proves(requirement)
    ]
    found += list(_unexplained(scope))
    found += [
        f"{requirement} is listed nowhere in scope.toml"
        for requirement in specification
        if not FIELD_CASE.fullmatch(requirement) and requirement not in listed
    ]
    return found


def _missing(tests: dict[str, frozenset[str]]) -> str:
    failed = [name for name, outcomes in tests.items() if "failed" in outcomes]
    if failed:
        return f"{failed[0]} failed"
    return "its tests were skipped" if tests else "no test carries it"


def _unexplained(scope: Scope) -> Iterator[str]:
    for requirement, page in scope.review.items():
        path = ROOT / page
        if not path.is_file():
            yield f"{requirement} is reviewed in {page}, which does not exist"
        elif re.search(rf"\b{re.escape(requirement.removeprefix(ORBIT))}\b", path.read_text(encoding="utf-8")) is None:
            yield f"{requirement} is reviewed in {page}, which does not name it"


def render(specification: dict[str, str], scope: Scope, evidence: Evidence) -> str:
    """Return the page: the matrix of the kernel, then that of Orbit.

    Each has one line per id in scope, then what was reviewed, then what comes later.
    """
    lines = [
        "# Requirement trace",
        "",
        "Written by `make trace` from a complete test run; do not edit. The sentences are shortened; the",
        "specifications ([kernel](../spec/outbox.md), [Orbit](../spec/subscriptions.md)) have them in full;",
        "`docs/spec/scope.toml` lists the ids that are claimed. In the marks of the tests, the ids of Orbit",
        f"carry the prefix `{ORBIT}`.",
        *_matrix("Kernel", _part(scope, orbit=False), specification, evidence),
        *_matrix("Orbit", _part(scope, orbit=True), specification, evidence),
    ]
    listed = {*scope.claimed, *scope.review, *scope.later}
    further = sorted(set(evidence.outcomes) - listed)
    if further:
        lines += ["", "## Proved beyond the scope", "", "| Id | Requirement | Tests |", "|---|---|---|"]
        lines += [_row(requirement, specification, _tests(requirement, evidence)) for requirement in further]
    return "\n".join(lines) + "\n"


def _part(scope: Scope, *, orbit: bool) -> Scope:
    def belongs(requirement: str) -> bool:
        return requirement.startswith(ORBIT) is orbit

    return Scope(
        tuple(requirement for requirement in scope.claimed if belongs(requirement)),
        {requirement: page for requirement, page in scope.review.items() if belongs(requirement)},
        {requirement: reason for requirement, reason in scope.later.items() if belongs(requirement)},
    )


def _matrix(part: str, scope: Scope, specification: dict[str, str], evidence: Evidence) -> Iterator[str]:
    yield from ("", f"## {part}: proved by tests", "", "| Id | Requirement | Tests |", "|---|---|---|")
    for requirement in scope.claimed:
        yield _row(requirement, specification, _tests(requirement, evidence) or "**none**")
    yield from (
        "",
        f"## {part}: kept by design, explained on a page",
        "",
        "| Id | Requirement | Page |",
        "|---|---|---|",
    )
    for requirement, page in sorted(scope.review.items()):
        yield _row(requirement, specification, f"[{Path(page).stem}](../{page.removeprefix('docs/')})")
    yield from ("", f"## {part}: later", "", "| Id | Requirement | Why not yet |", "|---|---|---|")
    for requirement, reason in sorted(scope.later.items()):
        yield _row(requirement, specification, reason)


def _tests(requirement: str, evidence: Evidence) -> str:
    return "<br>".join(_named(name, outcomes) for name, outcomes in sorted(evidence.tests(requirement).items()))


def _row(requirement: str, specification: dict[str, str], last: str) -> str:
    return f"| {requirement.removeprefix(ORBIT)} | {summary(specification.get(requirement, ''))} | {last} |"


def _named(name: str, outcomes: frozenset[str]) -> str:
    short = f"`{name.removeprefix('tests/')}`"
    return short if "passed" in outcomes and "failed" not in outcomes else f"{short} ({', '.join(sorted(outcomes))})"


def summary(text: str) -> str:
    """Return the first sentence as plain table text: no code marks, no bar that would end the cell."""
    plain = text.replace("`", "").replace("|", "\\|").replace("*", "").replace("<", "&lt;")
    sentence = re.split(r"(?<=\.) ", plain, maxsplit=1)[0]
    if len(sentence) <= SUMMARY_CHARACTERS_MAX:
        return sentence
    return sentence[:SUMMARY_CHARACTERS_MAX].rsplit(" ", 1)[0] + " …"
