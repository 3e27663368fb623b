"""`outbox_is_identifier` and the Python rule give one verdict, character by character (F11)."""

from __future__ import annotations

import unicodedata

import pytest

from seapost.contracts.identifiers import identifier_problem
from tests.kit.kernel import Kernel

# Every character that one of the two could treat specially, and its neighbours.
SPECIAL = sorted(
    {
        chr(point + step)
        for point in range(1, 0x110000)
        if unicodedata.category(chr(point)) in {"Cc", "Cf", "Zs", "Zl", "Zp"}
        for step in (-1, 0, 1)
        if point + step > 0 and unicodedata.category(chr(point + step)) not in {"Cs", "Cn"}
    }
)


@pytest.mark.req("F11", "REF-01")
@pytest.mark.parametrize("place", ["{}", "a{}", "{}a", "a{}b"], ids=["alone", "last", "first", "inside"])
def test_database_and_library_agree_on_every_special_character(shared_lean: Kernel, place: str) -> None:
    """White space, control and format characters of all of Unicode, at each place of an identifier."""
    values = [place.format(character) for character in SPECIAL]
    verdicts = shared_lean.rows(
        "select v, seapost.outbox_is_identifier(v) from unnest(%s::text[]) with ordinality as u (v, n) order by n",
        values,
    )
    assert [ascii(value) for value, is_one in verdicts if is_one is not (identifier_problem(value) is None)] == []
