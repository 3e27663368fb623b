"""Canonical JSON: one byte string for each document (RFC 8785 over I-JSON, RFC 7493).

Two documents are the same exactly when these bytes are the same, in every language. The written rules:

- A number is an IEEE 754 double. `1`, `1.0` and `10e-1` are one number, and so are `0`, `-0` and
  `-0.0`: both are read as the integer and written without sign, point or exponent (F09).
- An integer outside +-(2^53 - 1) is refused, because a reader in another language would round it (F06).
  So is a whole-numbered float from there up to 10^21: its canonical text would be such an integer.
  From 10^21 on the canonical text has an exponent, and the number is legal RFC 8785.
- Duplicate names, NaN and the infinities, U+0000, lone surrogates, a byte order mark, and text that is
  not UTF-8 are refused with the JSON pointer of the value (F04). Nothing is ever repaired.

The usual document takes a fast path through compiled coders: `orjson` writes, and reads what it then writes again
in the same bytes. It is used only where its text is known to be the canonical text (no very large or small numbers, no
names above U+FFFF); property tests compare it with `rfc8785` and with the exact path.
"""

from __future__ import annotations

import json
import re
from math import inf
from typing import Final, NoReturn, cast

import orjson
import rfc8785

from seapost.contracts.examination import (
    DEFAULT_LIMITS,
    EXPONENT_MIN,
    INTEGER_MAX,
    JSONValue,
    Limits,
    examine_text,
    examine_value,
)
from seapost.model.errors import CanonicalError, LimitExceeded

__all__ = ["DEFAULT_LIMITS", "JSONValue", "Limits", "canonicalise", "check_canonical", "encode", "parse", "read_plain"]

INTEGER_DIGITS_MAX: Final = len(str(INTEGER_MAX))

_FRACTION_MIN: Final = 1e-5
_FRACTION_MAX: Final = 1e15  # between these a fraction has no exponent, in ECMAScript and in orjson

_ASTRAL: Final = re.compile(rb"[\xf0-\xf4]")  # first byte of a character above U+FFFF
_ASTRAL_NAME: Final = re.compile("[\U00010000-\U0010ffff]")
_SORTED: Final = orjson.OPT_SORT_KEYS  # by code point, which is the order of UTF-16 units below U+10000
_TEXT: Final = frozenset({str})


class _LeaveFastPath(Exception):
    """The document needs the exact path: either it is refused there, or it only looks strange."""


def _members(pairs: list[tuple[str, JSONValue]]) -> dict[str, JSONValue]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise _LeaveFastPath
    return document


def _integer(digits: str) -> int:
    if len(digits) > INTEGER_DIGITS_MAX + 1:
        raise _LeaveFastPath
    number = int(digits)
    if not -INTEGER_MAX <= number <= INTEGER_MAX:
        raise _LeaveFastPath
    return number


def _number(digits: str) -> int | float:
    number = float(digits)
    size = abs(number)
    if size == inf or (INTEGER_MAX < size < EXPONENT_MIN and number.is_integer()):
        raise _LeaveFastPath
    return int(number) if size <= INTEGER_MAX and number.is_integer() else number


def _leave(_: str) -> NoReturn:
    raise _LeaveFastPath


_PARSER: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_number, parse_constant=_leave
)


def parse(text: bytes | str, *, limits: Limits = DEFAULT_LIMITS) -> JSONValue:
    """Read strict I-JSON text.

    Whole-numbered floats come back as `int`, so that a contract's verdict never depends on the
    spelling of a number.

    Raises:
        CanonicalError: the text is not JSON, or has no canonical form; with pointer and rule.
        LimitExceeded: the text is larger, deeper or longer than `limits` allows.
    """
    document = _decoded(text, limits)
    try:
        value: JSONValue = _PARSER.decode(document)
    except (_LeaveFastPath, ValueError, RecursionError):
        examine_text(document, limits)
        raise  # unreachable: the examination refuses whatever the parser refused
    if _is_doubtful(document, limits):
        examine_value(value, limits)
    return value


def encode(value: object, *, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Write the RFC 8785 bytes of `value`.

    Accepts exactly `None`, `bool`, `int`, `float`, `str`, `list`, `tuple` and `dict` with `str` names,
    and their subclasses; anything else is refused rather than converted.

    Raises:
        CanonicalError: the value has no canonical form; with pointer and rule.
        LimitExceeded: the document is larger, deeper or longer than `limits` allows.
    """
    if not _is_plain(value, limits):
        examine_value(value, limits)
        return _within(_exact(value), limits)
    try:
        data = orjson.dumps(value, option=_SORTED)
    except orjson.JSONEncodeError:  # half a surrogate pair, or deeper than orjson writes
        examine_value(value, limits)
        return _within(_exact(value), limits)
    if len(data) > limits.string_max or _has_nul(data):
        examine_value(value, limits)
    if not data.isascii() and _ASTRAL.search(data) and _has_astral_name(value):
        data = _exact(value)
    return _within(data, limits)


def canonicalise(text: bytes | str, *, limits: Limits = DEFAULT_LIMITS) -> tuple[JSONValue, bytes]:
    """Read text in any legal spelling; return its value and its canonical bytes. Errors as in `parse`."""
    if isinstance(text, bytes) and (value := read_plain(text, limits)) is not None:
        return value, text
    value = parse(text, limits=limits)
    return value, encode(value, limits=limits)


def check_canonical(text: bytes, *, limits: Limits = DEFAULT_LIMITS) -> JSONValue:
    """Read text that must already be canonical, byte for byte; consumers call this for each event.

    Raises:
        CanonicalError: rule `not_canonical` when the text is legal but spelled in another way; the
            rules of `parse` otherwise.
        LimitExceeded: as in `parse`.
    """
    value = read_plain(text, limits)
    if value is not None:
        return value
    value = parse(text, limits=limits)
    if encode(value, limits=limits) != text:
        message = "The text is not canonical JSON (RFC 8785); send the canonical bytes"
        raise CanonicalError(message, rule="not_canonical")
    return value


def read_plain(text: bytes, limits: Limits = DEFAULT_LIMITS) -> JSONValue:
    """The value of a canonical text that needs no exact check; None says only that it needs one.

    What is written again in the same bytes had sorted names, none of them twice, and one spelling for everything;
    left are the numbers that other readers would round, U+0000, order above U+FFFF, and the limits.
    """
    if len(text) > limits.bytes_max or len(text) > limits.string_max or _has_nul(text):
        return None
    try:
        value = orjson.loads(text)
        if orjson.dumps(value, option=_SORTED) != text:
            return None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    if not _has_plain_values(value, limits):
        return None
    if not text.isascii() and _ASTRAL.search(text) and _has_astral_name(value):
        return None
    return value


def _decoded(text: bytes | str, limits: Limits) -> str:
    """The text as `str`, once its size and encoding are known to be right."""
    if isinstance(text, str):
        document, size = text, len(text)
        if not text.isascii():
            size = len(text.encode(errors="surrogatepass"))
    else:
        size = len(text)
        document = ""
    if size > limits.bytes_max:
        message = f"The document has {size} bytes; at most {limits.bytes_max} are allowed"
        raise LimitExceeded(message, rule="bytes_max")
    if not isinstance(text, str):
        try:
            document = bytes(text).decode()
        except UnicodeDecodeError as error:
            message = f"The text is not UTF-8 (byte {error.start})"
            raise CanonicalError(message, rule="utf8") from None
    if document.startswith("\ufeff"):
        raise CanonicalError("The text starts with a byte order mark; send none", rule="byte_order_mark")
    return document


def _is_doubtful(document: str, limits: Limits) -> bool:
    """Whether the text might hold what only a walk over the value can judge; never wrong when False."""
    if "\\u0000" in document or "\\ud" in document or "\\uD" in document:
        return True
    opened = document.count("[") + document.count("{")
    return (
        opened > limits.depth_max
        or opened + document.count(",") > limits.items_max
        or len(document) > limits.string_max
        or not (document.isascii() or _is_unicode(document))
    )


def _is_unicode(document: str) -> bool:
    try:
        _ = document.encode()
    except UnicodeEncodeError:
        return False
    return True


def _has_nul(text: bytes) -> bool:
    """Whether the text might hold U+0000, which is always escaped; one byte is looked for much faster than six."""
    return b"\\" in text and b"\\u0000" in text


def _has_plain_values(value: object, limits: Limits) -> bool:
    """Whether a value just read holds only numbers with one spelling everywhere, and not more than the limits allow."""
    values: list[object] = [value]
    opened = 0
    for item in values:  # grows while it is walked
        kind = type(item)
        if kind is int:
            if not -INTEGER_MAX <= cast("int", item) <= INTEGER_MAX:
                return False
        elif kind is dict:
            opened += 1
            values += cast("dict[str, object]", item).values()
        elif kind is list:
            opened += 1
            values += cast("list[object]", item)
        elif kind is float and not _is_plain_fraction(cast("float", item)):
            return False
    return opened <= limits.depth_max and len(values) <= limits.items_max


def _is_plain_fraction(number: float) -> bool:
    """Whether a float is written with its shortest digits, a point and no exponent; false for whole numbers."""
    return _FRACTION_MIN <= abs(number) < _FRACTION_MAX and not number.is_integer()


def _has_astral_name(value: object) -> bool:
    """Whether an object inside holds a name above U+FFFF, which JavaScript sorts elsewhere (F07)."""
    values: list[object] = [value]
    for item in values:  # grows while it is walked
        kind = type(item)
        if kind is dict:
            members = cast("dict[str, object]", item)
            if any(map(_ASTRAL_NAME.search, members)):
                return True
            values += members.values()
        elif kind is list or kind is tuple:
            values += cast("list[object]", item)
    return False


def _is_plain(value: object, limits: Limits) -> bool:
    """Whether the compiled encoder writes this value canonically, apart from names above U+FFFF.

    Walks level by level: exact builtin types, safe integers, usual fractions, within depth and count. Strings
    are judged by the caller on the written text, which is cheaper.
    """
    level: list[object] = [value]
    items = 0
    for room in range(limits.depth_max, -1, -1):
        below = _below(level, may_open=room > 0)
        if not below:
            return below is not None
        items += len(below)
        if items > limits.items_max:
            return False
        level = below
    return False


def _below(level: list[object], *, may_open: bool) -> list[object] | None:
    """The values inside the objects and arrays of one level; None when one of its values is not plain."""
    below: list[object] = []
    for item in level:
        kind = type(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int:
            if not -INTEGER_MAX <= cast("int", item) <= INTEGER_MAX:
                return None
        elif kind is float:
            if not _is_plain_fraction(cast("float", item)):
                return None
        elif may_open and kind is dict:
            members = cast("dict[object, object]", item)
            if not {*map(type, members)} <= _TEXT:
                return None
            below += members.values()
        elif may_open and (kind is list or kind is tuple):
            below += cast("list[object]", item)
        else:
            return None
    return below


def _exact(value: object) -> bytes:
    """The reference encoding, for an examined value."""
    return rfc8785.dumps(value)  # pyright: ignore[reportArgumentType]


def _within(data: bytes, limits: Limits) -> bytes:
    if len(data) > limits.bytes_max:
        message = f"The document has {len(data)} bytes; at most {limits.bytes_max} are allowed"
        raise LimitExceeded(message, rule="bytes_max")
    return data
