"""Canonical JSON: equal documents, equal bytes; everything else refused with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import IntEnum, StrEnum

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seapost.contracts.canonical import DEFAULT_LIMITS, JSONValue, Limits, check_canonical, encode, parse, read_plain
from seapost.contracts.digest import det, digest_of, sha256_hex
from seapost.model.errors import CanonicalError, ContractError, LimitExceeded
from tests.kit.damage import damaged

SAFE = 2**53 - 1

ONE = "2bfd14f43d17fc7cea24e0917a8879b4b2f880b8baeec1b9d90fbaad655e71bd"
ZERO = "f3013f933b9fb80ab6d995e7ad9da36f683837ba1d81e950c943d40111eac2f0"


def _is_safe(number: float) -> bool:
    return not (number.is_integer() and SAFE < abs(number) < 1e21)


texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(allow_nan=False, allow_infinity=False).filter(_is_safe)
    | texts
)
documents = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=30)


def refusal(call: Callable[[], object]) -> ContractError:
    """The error that the call raises."""
    with pytest.raises(ContractError) as caught:
        _ = call()
    return caught.value


@pytest.mark.req("REF-02", "F07", "F09")
@given(documents)
@example({"\uff20": 1, "\U0001f600": 1})
@example({"\U0001f600": [], "\ue000": {"\U0001f600": "\U0001f600", "\ufffd": 2}})
@example({"\x01": "\x1f\x7f\u2028", '"\\': "\b\f\n\r\t/"})
@example([-0.0, 1e21, 5e-324, 1e-7, 123456.789, 1.0, 1.7976931348623157e308])
def test_the_fast_encoder_writes_the_reference_bytes(value: JSONValue) -> None:
    """For every I-JSON value the bytes are those of the reference implementation of RFC 8785."""
    assert encode(value) == rfc8785.dumps(value)  # pyright: ignore[reportArgumentType]


@pytest.mark.req("REF-02", "F09")
@given(documents)
def test_canonical_bytes_read_back_to_themselves(value: JSONValue) -> None:
    """What was written reads as canonical and is written the same again, so a digest survives every hop."""
    data = encode(value)
    assert encode(check_canonical(data)) == data
    assert parse(data) == check_canonical(data)


@pytest.mark.req("REF-02")
@given(documents, st.booleans(), st.sampled_from([None, 2]))
def test_the_spelling_of_a_document_does_not_matter(value: JSONValue, ascii_only: bool, indent: int | None) -> None:
    """White space and escapes change the text, never the canonical bytes."""
    spelled = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert encode(parse(spelled)) == encode(value)


@pytest.mark.req("REF-02")
@given(documents)
def test_another_spelling_is_not_canonical(value: JSONValue) -> None:
    """A text that differs from the canonical bytes in one blank is legal and yet refused as not canonical."""
    found = refusal(lambda: check_canonical(encode(value) + b" "))
    assert (found.rule, found.pointer) == ("not_canonical", "")


@pytest.mark.req("F06")
@pytest.mark.parametrize(
    "text",
    [
        '{"n":9007199254740992}',
        '{"n":9007199254740993}',
        '{"n":-9007199254740993}',
        '{"n":9007199254740993.0}',
        '{"n":1e20}',
        '{"n":99999999999999999999999999}',
    ],
)
def test_an_integer_beyond_2_to_53_is_refused_with_advice(text: str) -> None:
    """It is never rounded: refused at its place, with the advice to send a string."""
    found = refusal(lambda: parse(text))
    assert isinstance(found, CanonicalError)
    assert (found.rule, found.pointer) == ("integer_range", "/n")
    assert "string" in found.message
    assert refusal(lambda: encode(json.loads(text))).rule == "integer_range"


@pytest.mark.req("F06")
def test_the_largest_safe_integer_and_its_string_form_are_fine() -> None:
    """2^53-1 has the published digest; a larger one is fine as a string, and stays a string."""
    expected = "e1da48c6a6089f06ecb4e0a2259e658e3786b2420f52baccdf929ec6460d7b41"
    assert digest_of(parse('{"n":9007199254740991}')) == expected
    assert parse('{"n":"9007199254740993"}') == {"n": "9007199254740993"}


@pytest.mark.req("F06", "F09")
def test_whatever_is_accepted_stays_readable() -> None:
    """A float whose canonical text would be a large integer is refused; from 1e21 on the text has an exponent."""
    assert encode(1e21) == b"1e+21"
    assert check_canonical(b"1e+21") == 1e21
    assert refusal(lambda: encode([1e20])).pointer == "/0"


@pytest.mark.req("F07")
@pytest.mark.parametrize(
    ("text", "data", "digest"),
    [
        (
            r'{"\uff20":1,"\ud83d\ude00":1}',
            '{"\U0001f600":1,"\uff20":1}',
            "425159f5c1f0575fbcbf9d05a8f60cde3d040eae5166aa2136657564048651b6",
        ),
        (
            r'{"\ufb33":1,"\ud83d\ude00":2}',
            '{"\U0001f600":2,"\ufb33":1}',
            "ec4e7d8c2963caa38dccc3d42693719ac9c6ecd783891b583d333565620ac2be",
        ),
    ],
)
def test_names_are_ordered_by_utf_16_unit(text: str, data: str, digest: str) -> None:
    """A name above U+FFFF sorts before one near it, as in JavaScript; the other order is not canonical."""
    value = parse(text)
    assert encode(value) == data.encode()
    assert digest_of(value) == digest
    assert check_canonical(data.encode()) == value
    by_code_point = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    assert refusal(lambda: check_canonical(by_code_point)).rule == "not_canonical"


@pytest.mark.req("F09")
@pytest.mark.parametrize(
    ("texts", "digest"),
    [
        (['{"n":-0}', '{"n":-0.0}', '{"n":0}', '{"n":0e7}'], ZERO),
        (['{"n":1}', '{"n":1.0}', '{"n":10e-1}'], ONE),
        (['{"n":100}', '{"n":1e2}', '{"n":1E+2}'], "b39022c4ed96525c42cd0e7ce55308533962a655f1c19d5dac2f03e9dd995b2c"),
    ],
)
def test_one_number_has_one_digest_however_it_is_written(texts: list[str], digest: str) -> None:
    """Minus zero is zero, and a whole number is an integer, whatever its spelling."""
    values = [parse(text) for text in texts]
    assert {digest_of(value) for value in values} == {digest}
    assert all(type(value["n"]) is int for value in values if isinstance(value, dict))


@pytest.mark.req("F11")
@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (r'{"id":"caf\u00e9"}', "548e6c23920d3e450d2949502742e2b0bb9965b7559454d8e4f95107aa857edd"),
        (r'{"id":"cafe\u0301"}', "a38eb1be025d5154c3fb3737952419fba1e566b7e00b658590881bb5166c3f5a"),
    ],
)
def test_a_payload_is_never_normalised(text: str, digest: str) -> None:
    """Composed and decomposed spellings in a payload are two documents with two digests."""
    assert digest_of(parse(text)) == digest


@pytest.mark.req("F04")
@pytest.mark.parametrize(
    ("text", "rule", "pointer"),
    [
        (r'{"a":"x\u0000y"}', "nul_character", "/a"),
        (r'{"a":["x",{"b/c":"\u0000"}]}', "nul_character", "/a/1/b~1c"),
        (r'{"\u0000":1}', "nul_character", r"/\x00"),
        (r'{"a":"\ud83d"}', "lone_surrogate", "/a"),
        (r'{"a":"\ude00\ud83d"}', "lone_surrogate", "/a"),
        (r'{"\ud83d":1}', "lone_surrogate", r"/\ud83d"),
    ],
)
def test_text_the_database_cannot_hold_is_refused_at_its_place(text: str, rule: str, pointer: str) -> None:
    """U+0000 and half surrogates are refused when read and when written, with the pointer of the value."""
    for call in (lambda: parse(text), lambda: parse(text.encode()), lambda: encode(json.loads(text))):
        found = refusal(call)
        assert isinstance(found, CanonicalError)
        assert (found.rule, found.pointer) == (rule, pointer)


@pytest.mark.req("F04")
@pytest.mark.parametrize("text", [r'{"a":"\\u0000"}', '{"a":"\U0001f600"}', r'{"a":"\\ud83d"}'])
def test_honest_text_that_looks_alike_is_kept(text: str) -> None:
    """A backslash followed by `u0000`, and a whole surrogate pair, are stored unchanged."""
    assert encode(parse(text)) == text.encode()
    assert check_canonical(text.encode()) == parse(text)


@pytest.mark.req("REF-02")
@pytest.mark.parametrize(
    ("text", "rule", "pointer"),
    [
        ('{"a":{"b":1,"b":1}}', "duplicate_name", "/a/b"),
        (r'{"a":1,"\u0061":1}', "duplicate_name", "/a"),
        ("[NaN]", "not_finite", "/0"),
        ('{"n":-Infinity}', "not_finite", "/n"),
        ('{"n":1e400}', "not_finite", "/n"),
        ("{'a':1}", "json_syntax", ""),
        ("", "json_syntax", ""),
        ("[1] 2", "json_syntax", ""),
        ("[1,]", "json_syntax", ""),
        ('["a\nb"]', "json_syntax", ""),
        ("\ufeff{}", "byte_order_mark", ""),
    ],
)
def test_what_is_not_i_json_is_refused(text: str, rule: str, pointer: str) -> None:
    """Each deviation from I-JSON has its own rule, both for text to read and for text said to be canonical."""
    for found in (refusal(lambda: parse(text)), refusal(lambda: check_canonical(text.encode()))):
        assert (found.rule, found.pointer) == (rule, pointer)


@pytest.mark.req("REF-02")
def test_bytes_that_are_not_utf_8_are_refused() -> None:
    """UTF-16 and stray bytes are refused as such, and a str with half a surrogate pair as well."""
    assert refusal(lambda: parse(b'{"a":"\xff"}')).rule == "utf8"
    assert refusal(lambda: parse('{"a":1}'.encode("utf-16-le"))).rule in {"utf8", "json_syntax"}
    assert refusal(lambda: parse('{"a":"\ud83d"}')).rule == "lone_surrogate"


class Colour(StrEnum):
    """A str subclass."""

    RED = "red"


class Size(IntEnum):
    """An int subclass."""

    SMALL = 1


@pytest.mark.req("REF-02")
def test_only_json_types_are_written() -> None:
    """Tuples and subclasses are written as what they are; anything else is refused rather than converted."""
    assert encode({Colour.RED: (Size.SMALL, Colour.RED)}) == b'{"red":[1,"red"]}'
    assert refusal(lambda: encode({"a": [object()]})).rule == "unsupported_type"
    assert refusal(lambda: encode({"a": {1: 2}})).rule == "name_not_string"
    assert refusal(lambda: encode({"a": b"x"})).pointer == "/a"
    assert refusal(lambda: encode([float("nan")])).rule == "not_finite"


@pytest.mark.parametrize(
    ("limits", "value", "rule", "pointer"),
    [
        (Limits(bytes_max=9), ["12345678"], "bytes_max", ""),
        (Limits(depth_max=2), {"a": {"b": []}}, "depth_max", "/a/b"),
        (Limits(items_max=4), [[1, 2], [3]], "items_max", "/1"),
        (Limits(string_max=3), {"ab": "abcd"}, "string_max", "/ab"),
        (Limits(string_max=3), {"abcd": 1}, "string_max", "/abcd"),
    ],
)
def test_every_limit_holds_for_reading_and_writing(limits: Limits, value: JSONValue, rule: str, pointer: str) -> None:
    """One step over a limit is refused in both directions with the limit's name."""
    text = json.dumps(value, separators=(",", ":"))
    for call in (lambda: encode(value, limits=limits), lambda: parse(text, limits=limits)):
        found = refusal(call)
        assert isinstance(found, LimitExceeded)
        assert (found.rule, found.pointer) == (rule, pointer)
    assert refusal(lambda: check_canonical(text.encode(), limits=limits)).rule == rule


def test_the_limits_themselves_are_allowed() -> None:
    """A document exactly at the depth limit is read and written; one level more is refused."""
    depth = DEFAULT_LIMITS.depth_max
    deep = "[" * depth + "]" * depth
    assert encode(parse(deep)) == deep.encode()
    assert refusal(lambda: parse(f"[{deep}]")).rule == "depth_max"


def test_hostile_depth_ends_in_a_refusal() -> None:
    """A text of a hundred thousand brackets, and a list that holds itself, are refused, not crashed on."""
    assert refusal(lambda: parse("[" * 100_000)).rule in {"depth_max", "json_syntax"}
    endless: list[object] = []
    endless.append(endless)
    assert refusal(lambda: encode(endless)).rule == "depth_max"


@pytest.mark.req("REF-02")
def test_a_deterministic_identifier_is_kind_and_digest_of_kind_and_parts() -> None:
    """`det` is the kind, an underscore and the digest of the list of kind and parts; every part counts."""
    assert det("order", "a", 1) == "order_" + sha256_hex(b'["order","a",1]')
    assert len({det("order", "a", "b"), det("order", "ab"), det("order", ["a", "b"]), det("orders", "a", "b")}) == 4
    assert det("order", 1.0) == det("order", 1)


@pytest.mark.req("REF-02", "F04", "F06", "F07", "F09")
@settings(max_examples=400)
@given(documents, st.data())
def test_the_fast_reader_takes_only_canonical_text(value: JSONValue, data: st.DataObject) -> None:
    """What it takes, damaged or not, parses to the same value and is the reference encoding of that value."""
    text = data.draw(damaged(rfc8785.dumps(value)))  # pyright: ignore[reportArgumentType]
    found = read_plain(text)
    if found is not None:
        exact = parse(text)
        assert json.dumps(found) == json.dumps(exact)
        assert rfc8785.dumps(exact) == text  # pyright: ignore[reportArgumentType]


@pytest.mark.req("F04", "F06", "F07", "F09")
@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":1}',
        b"[-0]",
        b"[0.000001]",
        b"[1000000000000000.5]",
        b"[1.0]",
        b"[1e3]",
        b"[9007199254740992]",
        b"[-9007199254740992]",
        b"[18446744073709551615]",
        b"[18446744073709551616]",
        b'["\\u0000"]',
        b'["\\ud800"]',
        b'["\\/"]',
        b'{"b":1,"a":1}',
        '{"\U0001f600":1}'.encode(),
        b"[1,]",
        b"[1] ",
        b"\xef\xbb\xbf[1]",
        b"\xff",
        b"[NaN]",
        b"",
        b"[" * 65 + b"]" * 65,
        b"[" + b"0," * 100_000 + b"0]",
    ],
)
def test_the_fast_reader_leaves_what_is_rare(text: bytes) -> None:
    """Another spelling, a number that others round, order above U+FFFF, a limit: the exact path judges."""
    assert read_plain(text) is None


@pytest.mark.req("REF-02", "F09")
@settings(max_examples=500)
@given(st.floats(1e-7, 1e17) | st.floats(-1e17, -1e-7) | st.decimals(-1000, 1000, places=2).map(float))
def test_fractions_have_one_spelling(number: float) -> None:
    """Written fast or exactly, a fraction has the reference bytes; the usual ones are read fast."""
    if not _is_safe(number):
        return
    text = rfc8785.dumps([number])
    assert encode([number]) == text
    if 0.001 < abs(number) < 1e9:
        assert read_plain(text) is not None or number == 0


@pytest.mark.req("F07")
def test_a_character_above_u_ffff_is_rare_only_in_a_name() -> None:
    """A smiley in a value changes no order; in a name it does."""
    assert read_plain('{"a":["\U0001f600"]}'.encode()) == {"a": ["\U0001f600"]}
    assert read_plain('{"a":{"\U0001f600":1}}'.encode()) is None
