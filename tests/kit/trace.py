"""Requirement tracing: which test proves which sentence of the specification.

Two halves share this file, because they share the result format. As a pytest plugin it reads the ids in
`@pytest.mark.req(...)`, and with `--trace-json FILE` the process that owns the run (the controller under
xdist, never a worker) writes what became of every test. As a command,
`python -m tests.kit.trace FILE`, it compares that result with the specification and the scope list, writes
`docs/reference/trace.md` and fails when a claim has no proof.

States of an id: *proved* (a test that carries it passed and none failed), *reviewed* (a page explains how the
design keeps it and names it), *later* (its subject is not built in this release, with the reason).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.requirements import ROOT, Scope, load_scope, load_specification
from tests.kit.trace_report import Evidence, problems, render

REPORT = ROOT / "docs" / "reference" / "trace.md"
PROPERTY = "req"


class Recorder:
    """Collects the outcome of every test from the reports that reach the controlling process."""

    def __init__(self, target: Path | None) -> None:
        self.target = target
        self.tests: dict[str, dict[str, object]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst phase of each test; a skip counts only while nothing else was seen."""
        name = report.nodeid
        known = self.tests.setdefault(name, {"outcome": "passed", "req": []})
        known["req"] = sorted({str(value) for key, value in report.user_properties if key == PROPERTY})
        if report.failed:
            known["outcome"] = "failed"
        elif report.skipped and known["outcome"] != "failed":
            known["outcome"] = "skipped"

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the result file, sorted, so that two runs of the same tests are equal."""
        if self.target is None:
            return
        self.target.parent.mkdir(parents=True, exist_ok=True)
        result = {"exit": int(exitstatus), "tests": dict(sorted(self.tests.items()))}
        self.target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--trace-json`."""
    parser.addoption("--trace-json", default=None, metavar="FILE", help="write what each requirement's tests did")


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder where the reports arrive: in the controller, or in the only process."""
    if not hasattr(config, "workerinput"):
        target: object = config.getoption("--trace-json")
        config.pluginmanager.register(Recorder(None if target is None else Path(str(target))), "seapost-trace")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put each test's ids where its reports carry them across processes; refuse an empty or unknown mark."""
    specification = load_specification()
    for item in items:
        for requirement in _marked(item):
            if requirement not in specification:
                raise pytest.UsageError(f"{item.nodeid}: no requirement or field case is called {requirement!r}")
            item.user_properties.append((PROPERTY, requirement))


def _marked(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers(PROPERTY):
        if not mark.args:
            raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.req needs at least one id")
        yield from (str(value) for value in mark.args)


def main(arguments: list[str]) -> int:
    """Write the trace page from one result file; return 1 when something claimed is not proved."""
    if len(arguments) != 1:
        print("usage: python -m tests.kit.trace RESULT.json", file=sys.stderr)  # noqa: T201
        return 2
    evidence = Evidence.read(Path(arguments[0]))
    specification = load_specification()
    scope: Scope = load_scope()
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(render(specification, scope, evidence), encoding="utf-8")
    found = problems(specification, scope, evidence)
    for problem in found:
        print(f"trace: {problem}", file=sys.stderr)  # noqa: T201
    proved = sum(evidence.proves(requirement) for requirement in scope.claimed)
    print(  # noqa: T201
        f"trace: {proved} of {len(scope.claimed)} requirements in scope proved by tests, "
        f"{len(scope.review)} by review, {len(scope.later)} later; {len(found)} problems"
    )
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
