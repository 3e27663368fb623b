"""Every state of the model, and every broken twin of it, in which harm must be found (`make model` goes further)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.tree import ROOT
from tests.model.explore import World, explore
from tests.model.worlds import Twin, sound, twins

STEPS_MAX = 12


@pytest.mark.req(
    "TST-29",
    "TST-30",
    "TST-31",
    "TST-32",
    "TST-33",
    "STO-24",
    "CLM-04",
    "CLM-05",
    "CLM-07",
    "CLM-09",
    "DLV-07",
    "DLV-14",
    "DLV-15",
    "PUB-05",
    "PUB-09",
    "AMB-06",
    "AMB-47",
    "AMB-48",
    "SET-31",
    "REF-04",
    "NEG-43",
    "NEG-45",
    "F14",
    "F15",
    "F30",
    "F32",
    "F72",
)
@pytest.mark.parametrize("world", sound(small=True), ids=lambda world: world.name.split(":")[0].replace(" ", "-"))
def test_no_state_breaks_a_rule(world: World[Any]) -> None:
    """Whatever dies, stalls, expires or gets lost at whichever step: no rule is broken, and nothing is stuck."""
    result = explore(world)
    assert result.violation is None, str(result.violation)
    assert result.states > 100


@pytest.mark.req("TST-33", "NEG-43", "NEG-45", "AMB-47", "AMB-48")
@pytest.mark.parametrize("twin", twins(), ids=lambda twin: twin.name)
def test_a_broken_twin_is_caught(twin: Twin) -> None:
    """With one protection taken out the exploration finds the harm that it prevents, and tells it in a few steps."""
    violation = twin.explore().violation
    assert violation is not None
    assert violation.rule == twin.rule
    assert 1 < len(violation.steps) <= STEPS_MAX
    assert str(violation).startswith(f"broken: {twin.rule}\n")


def test_the_page_shows_what_the_model_finds() -> None:
    """The counterexample on the page is the one that the model prints."""
    (twin,) = [twin for twin in twins() if twin.name == "no-publication-lock"]
    text = f"twin {twin.name}: {twin.without}\n{twin.explore().violation}\n"
    assert text in (ROOT / "docs" / "explanation" / "model.md").read_text(encoding="utf-8")
