"""`canonical_json_v1` writes the same bytes as `rfc8785` for any I-JSON value (REF-02)."""

from __future__ import annotations

import json
import math
import struct

import pytest
import rfc8785
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.kit.kernel import Kernel

SAFE_INTEGER_MAX = 2**53 - 1

# I-JSON: no U+0000 (PostgreSQL cannot hold it) and no surrogates.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
# Characters around the border where UTF-8 and UTF-16 order differ.
BORDER = st.text(
    st.sampled_from("a\u007f\u0080\ud7ff\ue000\uee00\uefff\uffff\U00010000\U0001f600\U0010ffff"), max_size=3
)


def _decimal(mantissa: int, exponent: int) -> float:
    return float(f"{mantissa}e{exponent}")


FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.builds(
    _decimal, st.integers(1, 10**17), st.integers(-320, 290)
)
SCALARS = st.none() | st.booleans() | st.integers(-SAFE_INTEGER_MAX, SAFE_INTEGER_MAX) | FLOATS | TEXT | BORDER
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | BORDER, inner, max_size=5),
    max_leaves=12,
)


def _canonical(kernel: Kernel, text: str) -> bytes:
    return bytes(kernel.value("select seapost.canonical_json_v1(%s::jsonb)", text))


@pytest.mark.req("REF-02", "F07", "F09")
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
@example(value={"\U0001f600": 1, "\ufb33": 2, "\ue000": 3, "\ud7ff": 4, "a": 5})
@example(value={"": {}, "a": [], '\x01\x1f"\\\b\f\n\r\t/\x7f\u2028': -0.0})
@example(value=[1e21, 1e20, 123456789012345680000.0, 1e-6, 1e-7, 5e-324, 1.7976931348623157e308, 0.1 + 0.2, -1.5e-10])
def test_any_value_has_the_bytes_of_rfc_8785(shared_lean: Kernel, value: object) -> None:
    """Arbitrary nested values, astral and private-use names, and floats of every size come out byte for byte."""
    assert _canonical(shared_lean, json.dumps(value)) == rfc8785.dumps(value)  # pyright: ignore[reportArgumentType]


@pytest.mark.req("REF-02", "F09")
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bits=st.integers(0, 2**64 - 1))
@example(bits=int.from_bytes(struct.pack("<d", 1e23), "little"))
@example(bits=int.from_bytes(struct.pack("<d", 2.543913527433395e16), "little"))
def test_any_bit_pattern_of_a_double_is_written_as_ecmascript_does(shared_lean: Kernel, bits: int) -> None:
    """Every finite double, subnormal ones included, has its shortest ECMAScript spelling."""
    (number,) = struct.unpack("<d", bits.to_bytes(8, "little"))
    if math.isfinite(number):
        assert _canonical(shared_lean, repr(number)) == rfc8785.dumps(number)


@pytest.mark.req("REF-02", "F09")
@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ('{"b":1,"a":2}', b'{"a":2,"b":1}'),
        ("[1.0, 1e0, 10e-1, -0, 0.0]", b"[1,1,1,0,0]"),
        ('"\\u0061\\u20ac"', '"a€"'.encode()),
        (' { "a" : [ ] } ', b'{"a":[]}'),
        ("1" + "0" * 21, b"1e+21"),
        ("0.000001", b"0.000001"),
        ("0.0000001", b"1e-7"),
    ],
)
def test_spelling_does_not_matter(shared_lean: Kernel, spelling: str, canonical: bytes) -> None:
    """Order of names, white space, escapes and the spelling of numbers leave no trace."""
    assert _canonical(shared_lean, spelling) == canonical


def test_a_number_outside_the_doubles_is_refused(shared_lean: Kernel) -> None:
    """I-JSON numbers are doubles; what is none has no canonical form and raises instead of being rounded to
    infinity.
    """
    with pytest.raises(Exception, match="out of range"):
        _canonical(shared_lean, "1e400")
