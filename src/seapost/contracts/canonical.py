"""Canonical JSON: one byte string for each document (RFC 8785 over I-JSON, RFC 7493).

Two documents are the same exactly when these bytes are the same, in every language. The written rules:

- A number is an IEEE 754 double. `1`, `1.0` and `10e-1` are one number, and so are `0`, `-0` and
  `-0.0`: both are read as the integer and written without sign, point or exponent (F09).
- An integer outside +-(2^53 - 1) is refused, because a reader in another language would round it (F06).
  So is a whole-numbered float from there up to 10^21: its canonical text would be such an integer.
  From 10^21 on the canonical text has an exponent, and the number is legal RFC 8785.
- Duplicate names, NaN and the infinities, U+0000, lone surrogates, a byte order mark, and text that is
  not UTF-8 are refused with the JSON pointer of the value (F04). Nothing is ever repaired.

The usual document takes a fast path through the C coders of the standard library, which is used only
where its text is known to be the canonical text; a property test compares it with `rfc8785`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from math import inf
from typing import Final, NoReturn, cast

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

__all__ = ["DEFAULT_LIMITS", "JSONValue", "Limits", "canonicalise", "check_canonical", "encode", "parse"]

INTEGER_DIGITS_MAX: Final = len(str(INTEGER_MAX))

_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")


_SIMPLE: Final = frozenset({str, bool, type(None)})
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
# Reads canonical text only. A duplicate name cannot survive the comparison that follows, so objects
# need no hook; any number with a point or an exponent goes to the exact path.
_READER: Final = json.JSONDecoder(parse_int=_integer, parse_float=_leave, parse_constant=_leave)
_WRITER: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
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
    text = _WRITER.encode(value)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        examine_value(value, limits)
        raise  # unreachable: a string that is not Unicode was just refused
    if len(text) > limits.string_max or "\\u0000" in text:
        examine_value(value, limits)
    if len(data) != len(text) and _ASTRAL.search(text):
        data = _exact(value)
    return _within(data, limits)


def canonicalise(text: bytes | str, *, limits: Limits = DEFAULT_LIMITS) -> tuple[JSONValue, bytes]:
    """Read text in any legal spelling; return its value and its canonical bytes. Errors as in `parse`."""
    if isinstance(text, bytes) and (value := _read_plain(text, limits)) is not None:
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
    value = _read_plain(text, limits)
    if value is not None:
        return value
    value = parse(text, limits=limits)
    if encode(value, limits=limits) != text:
        message = "The text is not canonical JSON (RFC 8785); send the canonical bytes"
        raise CanonicalError(message, rule="not_canonical")
    return value


def _read_plain(text: bytes, limits: Limits) -> JSONValue:
    """The value of a canonical text that needs no exact check; None when it needs one."""
    if len(text) > limits.bytes_max:
        return None
    try:
        document = text.decode()
        value: JSONValue
        value, end = _READER.raw_decode(document)
        if end != len(document) or _WRITER.encode(value) != document:
            return None
    except (_LeaveFastPath, ValueError, RecursionError):
        return None
    if _is_doubtful(document, limits) or (len(document) != len(text) and _ASTRAL.search(document)):
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


def _is_plain(value: object, limits: Limits) -> bool:
    """Whether the C encoder writes this value canonically, apart from astral names.

    Walks level by level: exact builtin types, safe integers, no floats, within depth and count. Strings
    are judged by the caller on the written text, which is cheaper.
    """
    level: list[object] = [value]
    items = 0
    for room in range(limits.depth_max, -1, -1):
        below: list[object] = []
        for item in level:
            kind = type(item)
            if kind in _SIMPLE:
                continue
            if isinstance(item, int):
                if kind is not int or not -INTEGER_MAX <= item <= INTEGER_MAX:
                    return False
                continue
            inner = _inner(item) if room else None
            if inner is None:
                return False
            below.extend(inner)
        if not below:
            return True
        items += len(below)
        if items > limits.items_max:
            return False
        level = below
    return False


def _inner(item: object) -> Collection[object] | None:
    """The values inside a plain object or array; None when it is neither."""
    kind = type(item)
    if kind is list or kind is tuple:
        return cast("list[object]", item)
    if kind is dict:
        members = cast("dict[object, object]", item)
        if {*map(type, members)} <= _TEXT:
            return members.values()
    return None


def _exact(value: object) -> bytes:
    """The reference encoding, for an examined value."""
    return rfc8785.dumps(value)  # pyright: ignore[reportArgumentType]


def _within(data: bytes, limits: Limits) -> bytes:
    if len(data) > limits.bytes_max:
        message = f"The document has {len(data)} bytes; at most {limits.bytes_max} are allowed"
        raise LimitExceeded(message, rule="bytes_max")
    return data
