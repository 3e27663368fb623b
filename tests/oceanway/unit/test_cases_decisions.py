"""The cases of a fence as a function of what is known: no order, no gap, at most one open."""

from __future__ import annotations

from itertools import product
from uuid import UUID

import pytest

from oceanway.operations.cases import Request, Resolution, decide

GENERATIONS = (1, 2, 3, 4)


def request(generation: int) -> Request:
    """Make a request."""
    return Request(UUID(int=generation), f"case-{generation}")


def resolution(generation: int) -> Resolution:
    """Make a resolution."""
    return Resolution(UUID(int=100 + generation), f"fact-{generation}", "d" * 64)


@pytest.mark.req("CASE-07", "CASE-10", "CASE-11", "CASE-13", "AMB-13")
def test_every_set_of_four_generations_has_at_most_one_open_case_and_only_ended_ones_before_it() -> None:
    """All 256 sets: a case exists up to the first generation without resolution, and follows its predecessor's end."""
    for asked, ended in product(product((False, True), repeat=4), repeat=2):
        requests = {one: request(one) for one, known in zip(GENERATIONS, asked, strict=True) if known}
        resolutions = {one: resolution(one) for one, known in zip(GENERATIONS, ended, strict=True) if known}
        first_open = next((one for one in GENERATIONS if one not in resolutions), 5)
        cases = decide(requests, resolutions)
        assert [case.generation for case in cases] == [one for one in requests if one <= first_open]
        assert [case.generation for case in cases if case.state == "open"] == [first_open] * (first_open in requests)
        for case in cases:
            assert case.follows == resolutions.get(case.generation - 1)
            assert case.ended_by == (resolutions[case.generation] if case.state == "ended" else None)
