"""Exact text of JSON members: against a plain reading, random texts, and texts made to be slow or deep."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orbit.model.exact_json import depth, raw_members, value_of

spaces = st.text(" \t\r\n", max_size=3)
digits = st.integers(1, 10_000).map(lambda count: "7" * count) | st.integers(0, 10**40).map(str)
numbers = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    digits,
    st.sampled_from(["", ".0", ".50", ".00100"]),
    st.sampled_from(["", "e5", "E+07", "e-12", "e0"]),
) | st.sampled_from(["-0", "0", "-0.0", "1.00", "1e400"])
strings = st.text(st.characters(), max_size=12).map(json.dumps) | st.sampled_from(
    [r'"\u0000"', r'"\ud800"', r'"\udfff\ud800"', r'"a\/b"', '"[{\\"}]"', r'"\\"', '"é😀"', '""']
)
scalars = numbers | strings | st.sampled_from(["true", "false", "null"])


def _joined(parts: list[str], space: str, frame: str) -> str:
    return frame[0] + space + f"{space},".join(parts) + space + frame[1]


values = st.recursive(
    scalars,
    lambda inner: (
        st.builds(_joined, st.lists(inner, max_size=4), spaces, st.just("[]"))
        | st.builds(
            _joined,
            st.lists(st.builds("{}{}:{}{}".format, strings, spaces, spaces, inner), max_size=4),
            spaces,
            st.just("{}"),
        )
    ),
    max_leaves=12,
)


@pytest.mark.req("orbit:SRC-19", "orbit:T-P05", "orbit:SDK-06")
@settings(max_examples=150, deadline=None)
@given(
    members=st.dictionaries(st.text(max_size=8), values, max_size=6),
    before=spaces,
    after=spaces,
    ascii_only=st.booleans(),
)
@example(members={"result": "1" * 10_000, 'a"\\': r'"\u0000\ud800"'}, before=" ", after="\n", ascii_only=True)
def test_every_member_keeps_its_text_whatever_surrounds_it(
    members: dict[str, str], before: str, after: str, ascii_only: bool
) -> None:
    """Random values between random white space come back byte for byte, without the white space, in their order."""
    parts = [
        f"{before}{json.dumps(name, ensure_ascii=ascii_only)}{after}:{before}{text}{after}"
        for name, text in members.items()
    ]
    assert list(raw_members(f"{before}{{{','.join(parts)}}}{after}").items()) == list(members.items())


@pytest.mark.req("orbit:SRC-19")
@settings(max_examples=300, deadline=None)
@given(st.text('{}[]":,\\ \nau0123.-e', max_size=24))
@example('{"a":1')
@example('{"a":1,}')
@example('{"a":1}x')
@example('{"a":"\n"}')
@example('\ufeff{"a":1}')
def test_exactly_what_python_reads_as_an_object_has_members(text: str) -> None:
    """On texts that are nearly JSON, agree with `json.loads` about what is an object, and on its members' values."""
    seen: list[tuple[str, Any]] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen[:] = pairs
        return dict(pairs)

    try:
        plain = json.loads(text, object_pairs_hook=note, parse_constant=lambda _: 1 / 0)
    except ValueError:
        plain = None
    if isinstance(plain, dict) and len(plain) == len(seen):  # pyright: ignore[reportUnknownArgumentType]
        assert {name: json.loads(value) for name, value in raw_members(text).items()} == plain
    else:
        with pytest.raises(ValueError, match=r"at character|expected|twice"):
            raw_members(text)


@pytest.mark.req("orbit:SRC-19", "orbit:API-04")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a":1,"a":2}', "twice"),
        ('{"a":1,"\\u0061":2}', "twice"),
        ('{"a":NaN}', "not a JSON number"),
        ('{"a":-Infinity}', "not a JSON number"),
        ('{"a":[Infinity]}', "not a JSON number"),
        ("[1]", "object"),
        ("", "object"),
        ('{"a":1}{"b":2}', "after the object"),
        ('{"secret-in-the-body', "at character"),
    ],
)
def test_what_is_not_one_object_of_distinct_members_is_refused_without_quoting_it(text: str, sentence: str) -> None:
    """Refusals are ValueErrors whose text quotes nothing of a body that may hold a secret."""
    with pytest.raises(ValueError, match=sentence) as caught:
        raw_members(text)
    assert "secret" not in str(caught.value)
    assert not hasattr(caught.value, "doc"), "the exception carries the whole text"


def _far_down(frames: int, work: Callable[[], object]) -> object:
    return work() if frames == 0 else _far_down(frames - 1, work)


@pytest.mark.req("orbit:SRC-20", "orbit:T-N18", "orbit:SRC-19")
@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("frames", [0, 700])
def test_256_levels_inside_a_snapshot_inside_a_frame_are_read_from_any_depth_of_the_stack(
    opening: str, frames: int
) -> None:
    """A result of 256 levels is read by a caller deep in its own stack too; one level more than fits is refused."""
    closing = "]" if opening == "[" else "}"
    result = opening * 256 + "1" + closing * 256
    frame = f'{{"snapshot":{{"result":{result}}}}}'
    assert depth(result) == 256
    snapshot: Any = _far_down(frames, lambda: raw_members(frame)["snapshot"])
    assert raw_members(snapshot)["result"] == result
    assert _far_down(frames, lambda: value_of(snapshot)) is not None
    for read in (raw_members, value_of):
        with pytest.raises(ValueError, match="nested too deeply"):
            read(f'{{"a":{frame}}}')


class _Pairs(list[tuple[str, Any]]):
    """An object as its pairs, so that a member that occurs twice is not lost."""


@pytest.mark.req("orbit:SRC-20")
@settings(max_examples=200, deadline=None)
@given(values)
def test_depth_counts_brackets_outside_strings_only(text: str) -> None:
    """Against a count on the parsed value, whose strings hold brackets, quotes and backslashes."""

    def levels(value: Any) -> int:  # noqa: ANN401
        if isinstance(value, _Pairs):
            return 1 + max((levels(part) for _, part in value), default=0)
        if isinstance(value, list):
            return 1 + max(map(levels, cast("list[Any]", value)), default=0)
        return 0

    assert depth(text) == levels(json.loads(text, parse_int=str, object_pairs_hook=_Pairs))


@pytest.mark.req("orbit:SRC-20")
@given(st.text('{}[]"\\ax', max_size=40))
def test_depth_takes_any_text(text: str) -> None:
    """Unterminated strings and unbalanced brackets are counted as they stand and never fail."""
    assert -len(text) <= depth(text) <= len(text)


@pytest.mark.req("orbit:SDK-06", "orbit:T-P05")
def test_numbers_are_read_without_loss() -> None:
    """Integers stay integers, also beyond what a double holds; fractions and exponents are Decimal."""
    value = value_of(' {"n":12345678901234567890,"m":1.10,"e":-2E+3,"z":-0.0,"t":[true,null,"\\u0000"]} ')
    assert value == {
        "n": 12345678901234567890,
        "m": Decimal("1.10"),
        "e": Decimal("-2E+3"),
        "z": Decimal("-0.0"),
        "t": [True, None, "\x00"],
    }
    assert str(value["m"]) == "1.10"
    assert str(value["z"]) == "-0.0"
    assert isinstance(value["n"], int)


@pytest.mark.req("orbit:SDK-06", "orbit:T-P05")
@pytest.mark.parametrize("count", [4299, 4300, 4301, 10_000])
@pytest.mark.parametrize("limit", [None, 640])
def test_an_integer_of_any_length_is_exact(count: int, limit: int | None) -> None:
    """Python refuses to read more than 4300 digits as an int, or fewer where a process says so; Decimal does not."""
    digits_text = "-" + "9" * count
    before = sys.get_int_max_str_digits()
    try:
        if limit is not None:
            sys.set_int_max_str_digits(limit)
        value = value_of(f"[{digits_text}]")[0]
        assert Decimal(value) == Decimal(digits_text)
        assert not isinstance(value, float)
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.req("orbit:SDK-06")
@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", "1 2", "", "1e1000000000000000000", "[1", '"\n"'])
def test_what_is_not_one_value_is_refused(text: str) -> None:
    """Constants, several values, and an exponent that Decimal cannot hold, which must not become a NaN or a zero."""
    with pytest.raises(ValueError, match=r".+"):
        value_of(text)


@pytest.mark.req("orbit:SRC-19", "orbit:SRC-20")
@pytest.mark.parametrize(
    "text",
    [
        '{"a":"' + '\\"' * 500_000,
        '{"a":' + "[" * 1_000_000,
        "{" + " " * 1_000_000,
        '{"a"' * 200_000,
        '{"a":[' + "[]," * 330_000 + "1]}",
        '{"a":[' + "1," * 500_000 + "1]}",
        '{"a":' + " " * 1_000_000 + "1}",
        '{"' + "a" * 1_000_000,
    ],
    ids=["escapes", "brackets", "space", "names", "pairs", "numbers", "gap", "unended-name"],
)
def test_a_mebibyte_made_to_be_slow_is_read_or_refused_in_linear_time(text: str) -> None:
    """Worst cases for a backtracking or quadratic reader; those would take minutes, this takes milliseconds."""
    began = time.process_time()
    with contextlib.suppress(ValueError):
        raw_members(text)
    depth(text)
    assert time.process_time() - began < 5
