"""The trace itself: what counts as proof, and which claims it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.requirements import ORBIT, Scope, load_scope, load_specification
from tests.kit.trace_report import FIELD_CASE, Evidence, problems, render, summary

SPECIFICATION = {"AAA-01": "First sentence. Second `one`|two.", "AAA-02": "Another.", "AAA-03": "Third."}


def _evidence(tmp_path: Path, *tests: tuple[str, str, str]) -> Evidence:
    result = {"exit": 0, "tests": {name: {"outcome": outcome, "req": [req]} for name, outcome, req in tests}}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result), encoding="utf-8")
    return Evidence.read(path)


def _claim(*requirements: str, later: dict[str, str] | None = None, review: dict[str, str] | None = None) -> Scope:
    return Scope(requirements, review or {}, later or {})


@pytest.mark.parametrize(
    ("tests", "proved"),
    [
        ([("t::a", "passed", "AAA-01")], True),
        ([("t::a[1]", "passed", "AAA-01"), ("t::a[2]", "failed", "AAA-01")], False),
        ([("t::a", "passed", "AAA-01"), ("t::b", "failed", "AAA-01")], False),
        ([("t::a", "passed", "AAA-01"), ("t::b", "skipped", "AAA-01")], True),
        ([("t::a", "skipped", "AAA-01")], False),
        ([("t::a", "passed", "AAA-02")], False),
        ([], False),
    ],
)
def test_a_requirement_is_proved_by_a_passing_test_and_by_no_failing_one(
    tmp_path: Path, tests: list[tuple[str, str, str]], *, proved: bool
) -> None:
    """A failed case disproves, a skipped one says nothing, and a test of another id does not count."""
    evidence = _evidence(tmp_path, *tests)
    assert evidence.proves("AAA-01") is proved
    claims = [problem for problem in problems(SPECIFICATION, _claim("AAA-01"), evidence) if "claimed" in problem]
    assert bool(claims) is not proved


def test_an_unknown_id_is_a_problem_wherever_it_stands(tmp_path: Path) -> None:
    """An id that the specification does not have is named, in the scope and in a mark."""
    evidence = _evidence(tmp_path, ("t::a", "passed", "BBB-01"))
    found = problems(SPECIFICATION, _claim("CCC-01"), evidence)
    assert any("BBB-01 is used in a mark" in problem for problem in found)
    assert any("CCC-01 is in scope.toml" in problem for problem in found)


def test_what_is_proved_is_not_later(tmp_path: Path) -> None:
    """An id cannot be excused and proved at once: the excuse would hide that the claim can be broken."""
    evidence = _evidence(tmp_path, ("t::a", "passed", "AAA-02"))
    others = {"AAA-01": "not built", "AAA-03": "not built"}
    excused = problems(SPECIFICATION, _claim(later=others | {"AAA-02": "not built"}), evidence)
    assert excused == ["AAA-02 is listed as later but a test proves it: claim it"]
    assert not problems(SPECIFICATION, _claim("AAA-02", later=others), evidence)


def test_a_review_needs_a_page_that_names_the_id(tmp_path: Path) -> None:
    """A page that is missing, or does not mention the id, explains nothing."""
    evidence = _evidence(tmp_path)
    missing = problems(SPECIFICATION, _claim(review={"AAA-01": "docs/nowhere.md"}), evidence)
    silent = problems(SPECIFICATION, _claim(review={"AAA-01": "README.md"}), evidence)
    assert "does not exist" in missing[0]
    assert "does not name it" in silent[0]


def test_the_page_shows_every_id_with_its_tests(tmp_path: Path) -> None:
    """Each claimed id has one line; text cannot break the table; an unproved id is plain to see."""
    evidence = _evidence(tmp_path, ("tests/unit/test_a.py::test_b[x]", "passed", "AAA-01"))
    page = render(SPECIFICATION, _claim("AAA-01", "AAA-02"), evidence)
    assert "| AAA-01 | First sentence. | `unit/test_a.py::test_b` |" in page
    assert "| AAA-02 | Another. | **none** |" in page
    assert summary("one `|` bar") == "one \\| bar"


def test_the_scope_names_only_what_the_specification_has() -> None:
    """docs/spec/scope.toml and the specification agree, and the field cases are part of both."""
    scope, specification = load_scope(), load_specification()
    assert scope.claimed
    assert set(scope.claimed) | set(scope.review) | set(scope.later) <= set(specification)
    assert {"CLM-05", "REF-02", "NEG-43", "AMB-47", "F04"} <= set(specification)
    assert {"orbit:SRC-05", "orbit:T-R01", "orbit:T-P6-5", "orbit:TX-03b"} <= set(specification)


def test_every_id_is_listed_and_an_unlisted_one_is_a_problem(tmp_path: Path) -> None:
    """Nothing of either specification may fall out of sight: claimed, reviewed or later, but listed."""
    evidence = _evidence(tmp_path, ("t::a", "passed", "orbit:AAA-01"))
    found = problems({"orbit:AAA-01": "First.", "orbit:AAA-02": "Second."}, _claim("orbit:AAA-01"), evidence)
    assert found == ["orbit:AAA-02 is listed nowhere in scope.toml"]
    listed = load_scope()
    both = {requirement for requirement in load_specification() if not FIELD_CASE.fullmatch(requirement)}
    assert both <= {*listed.claimed, *listed.review, *listed.later}
    orbit = {requirement for requirement in both if requirement.startswith(ORBIT)}
    assert (len(orbit), len(both - orbit)) == (434, 624)


def test_the_page_keeps_the_two_specifications_apart(tmp_path: Path) -> None:
    """Both have a `GEN-01`: each stands in the matrix of its own document, without the prefix of the marks."""
    evidence = _evidence(tmp_path, ("t::kernel", "passed", "GEN-01"), ("t::orbit", "passed", "orbit:GEN-01"))
    specification = {"GEN-01": "Kernel sentence.", "orbit:GEN-01": "Orbit sentence."}
    kernel, orbit = render(specification, _claim("GEN-01", "orbit:GEN-01"), evidence).split("## Orbit: proved")
    assert "| GEN-01 | Kernel sentence. | `t::kernel` |" in kernel
    assert "| GEN-01 | Orbit sentence. | `t::orbit` |" in orbit
