"""Reason codes are closed, low in sensitivity, and of one form (REF-34)."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from oceanway.contracts import reasons

CODES = {name: get_args(value) for name, value in vars(reasons).items() if name[0].isupper() and get_args(value)}


@pytest.mark.req("REF-34")
@pytest.mark.parametrize("name", sorted(CODES))
def test_every_reason_is_a_closed_set_of_codes_of_one_form(name: str) -> None:
    """Letters, digits and underscores, 3 to 64 of them, none twice."""
    codes = CODES[name]

    assert len(codes) == len(set(codes)) > 1
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{2,63}", code) for code in codes)
