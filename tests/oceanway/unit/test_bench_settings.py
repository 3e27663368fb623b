"""What a measurement may be asked for."""

from __future__ import annotations

import pytest

from oceanway.bench.measure import ENDS, SLICE_RUNS, BenchSettings
from seapost.model.errors import InvalidSetting


@pytest.mark.parametrize("wrong", [{"runs": 0}, {"rate": 0}, {"seconds": 0}, {"runs": 100_001}, {"growth": SLICE_RUNS}])
def test_a_measurement_that_says_nothing_is_refused(wrong: dict[str, int]) -> None:
    """The error names the setting; a growth has slices to compare at both ends."""
    with pytest.raises(InvalidSetting, match=next(iter(wrong))):
        _ = BenchSettings(**wrong)


def test_growth_is_left_out_unless_asked_for() -> None:
    """It takes an hour and more."""
    assert BenchSettings().growth == 0
    assert BenchSettings(growth=2 * ENDS * SLICE_RUNS).growth == 2 * ENDS * SLICE_RUNS
