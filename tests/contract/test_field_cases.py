"""The page of field cases and the tests agree: what it calls a proof exists and is marked with the case."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.kit.documents import ROOT
from tests.kit.requirements import load_scope

PAGE: Final = ROOT / "docs" / "reference" / "field-cases.md"
_ROW: Final = re.compile(r"^\| \*\*(F\d\d)\*\* .*\| ([^|]+) \|$", re.MULTILINE)


def _rows() -> dict[str, str]:
    return dict(_ROW.findall(PAGE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("case", sorted(_rows()))
def test_a_proof_is_marked_with_its_case(case: str) -> None:
    """Every test file that stands behind a case carries the case's id; a case without one says so by a dash."""
    proof = _rows()[case]
    files = re.findall(r"`([^`]+\.py)`", proof)
    assert files or proof.strip() == "–"
    for name in files:
        path = ROOT / "tests" / name
        assert path.is_file(), f"{name} does not exist"
        assert f'"{case}"' in path.read_text(encoding="utf-8"), f"{name} is not marked with {case}"


def test_every_claimed_case_is_on_the_page() -> None:
    """What the scope claims of the field cases, the page explains."""
    claimed = {identity for identity in load_scope().claimed if re.fullmatch(r"F\d\d", identity)}
    assert claimed <= _rows().keys()
