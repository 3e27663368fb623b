"""The exact judgement of a document: slow, and able to name the offending value by JSON pointer.

`canonical` comes here only when its fast path cannot vouch for a document. A text is parsed once more
with duplicate names and number spellings kept, then walked in document order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import isfinite
from typing import TypeAlias

from seapost.model.errors import CanonicalError, ContractError, LimitExceeded

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"

INTEGER_MAX = 2**53 - 1
EXPONENT_MIN = 1e21
"""From here on ECMAScript writes a number with an exponent, so its text is no integer literal."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document may cost its reader.

    Attributes:
        bytes_max: UTF-8 bytes of the text read, and of the canonical text written.
        depth_max: objects and arrays inside one another.
        items_max: members of all objects and items of all arrays together.
        string_max: characters of one string or name.
    """

    bytes_max: int = 1_048_576
    depth_max: int = 64
    items_max: int = 100_000
    string_max: int = 1_048_576


DEFAULT_LIMITS = Limits()


class _Members(list[tuple[str, object]]):
    """The members of an object as written, duplicates included."""


class _Integer(str):
    """The spelling of an integer."""

    __slots__ = ()


class _Float(str):
    """The spelling of a number with a point or an exponent."""

    __slots__ = ()


class _Constant(str):
    """`NaN`, `Infinity` or `-Infinity`, which Python's parser knows and JSON does not."""

    __slots__ = ()


_TRACER = json.JSONDecoder(object_pairs_hook=_Members, parse_int=_Integer, parse_float=_Float, parse_constant=_Constant)


def escape(name: object) -> str:
    """One token of a JSON pointer (RFC 6901)."""
    return str(name).replace("~", "~0").replace("/", "~1")


def examine_text(document: str, limits: Limits) -> None:
    """Raise the refusal of a text that the parser could not take; return when it is legal."""
    try:
        value = _TRACER.decode(document)
    except RecursionError:
        raise _too_deep("", limits) from None
    except json.JSONDecodeError as error:
        message = f"The text is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise CanonicalError(message, rule="json_syntax") from None
    examine_value(value, limits)


def examine_value(value: object, limits: Limits) -> None:
    """Raise the first refusal in document order; return when the value has a canonical form.

    Raises:
        CanonicalError: rules `duplicate_name`, `name_not_string`, `not_finite`, `integer_range`,
            `nul_character`, `lone_surrogate`, `unsupported_type`.
        LimitExceeded: rules `depth_max`, `items_max`, `string_max`.
    """
    _Examination(limits).visit(value, "", limits.depth_max)


@dataclass(slots=True)
class _Examination:
    limits: Limits
    items: int = field(default=0)

    def visit(self, value: object, pointer: str, room: int) -> None:
        match value:
            case None | bool():
                return
            case str():
                self._text(value, pointer)
            case int():
                self._integer(value, pointer)
            case float():
                self._float(value, pointer, str(value))
            case _Members():
                self._object(value, pointer, room)
            case dict():
                members: list[tuple[object, object]] = list(value.items())  # pyright: ignore[reportUnknownArgumentType]
                self._object(members, pointer, room)
            case list() | tuple():
                self._array(list(value), pointer, room)  # pyright: ignore[reportUnknownArgumentType]
            case _:
                message = f"A value of type {type(value).__name__} has no JSON form"
                raise CanonicalError(message, pointer=pointer, rule="unsupported_type")

    def _text(self, text: str, pointer: str) -> None:
        """A string, or the spelling of a number in a traced text."""
        match text:
            case _Integer():
                self._integer_text(text, pointer)
            case _Float():
                self._float(float(text), pointer, text)
            case _Constant():
                raise _not_finite(text, pointer)
            case _:
                self._string(text, pointer)

    def _object(self, members: list[tuple[object, object]] | _Members, pointer: str, room: int) -> None:
        self._open(len(members), pointer, room)
        names: set[str] = set()
        for name, value in members:
            if not isinstance(name, str):
                message = f"A name of type {type(name).__name__} is not a string"
                raise CanonicalError(message, pointer=pointer, rule="name_not_string")
            place = f"{pointer}/{escape(name)}"
            self._string(name, place)
            if name in names:
                message = "The object holds this name twice"
                raise CanonicalError(message, pointer=place, rule="duplicate_name")
            names.add(name)
            self.visit(value, place, room - 1)

    def _array(self, values: list[object], pointer: str, room: int) -> None:
        self._open(len(values), pointer, room)
        for index, value in enumerate(values):
            self.visit(value, f"{pointer}/{index}", room - 1)

    def _open(self, count: int, pointer: str, room: int) -> None:
        if room == 0:
            raise _too_deep(pointer, self.limits)
        self.items += count
        if self.items > self.limits.items_max:
            message = f"The document holds more than {self.limits.items_max} values"
            raise LimitExceeded(message, pointer=pointer, rule="items_max")

    def _string(self, text: str, pointer: str) -> None:
        if len(text) > self.limits.string_max:
            message = f"The string has {len(text)} characters; at most {self.limits.string_max} are allowed"
            raise LimitExceeded(message, pointer=pointer, rule="string_max")
        if "\x00" in text:
            message = "The string holds the character U+0000, which PostgreSQL cannot store"
            raise CanonicalError(message, pointer=printable(pointer), rule="nul_character")
        try:
            _ = text.encode()  # refuses exactly the lone surrogates
        except UnicodeEncodeError:
            message = "The string holds half of a surrogate pair, which is not Unicode text"
            raise CanonicalError(message, pointer=printable(pointer), rule="lone_surrogate") from None

    def _integer_text(self, digits: str, pointer: str) -> None:
        # The length is checked first: reading a million digits is itself an attack.
        if len(digits) > len(str(INTEGER_MAX)) + 1:
            raise _out_of_range(pointer)
        self._integer(int(digits), pointer)

    def _integer(self, number: int, pointer: str) -> None:
        if not -INTEGER_MAX <= number <= INTEGER_MAX:
            raise _out_of_range(pointer)

    def _float(self, number: float, pointer: str, spelling: str) -> None:
        if not isfinite(number):
            raise _not_finite(spelling[:32], pointer)
        if number.is_integer() and INTEGER_MAX < abs(number) < EXPONENT_MIN:
            raise _out_of_range(pointer)


def printable(pointer: str) -> str:
    """The pointer with every character that cannot be shown or stored written as an escape."""
    return pointer.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def _too_deep(pointer: str, limits: Limits) -> ContractError:
    message = f"The document is more than {limits.depth_max} levels deep"
    return LimitExceeded(message, pointer=pointer, rule="depth_max")


def _not_finite(what: str, pointer: str) -> ContractError:
    message = f"{what} is not a finite JSON number; leave the field out or send a string"
    return CanonicalError(message, pointer=pointer, rule="not_finite")


def _out_of_range(pointer: str) -> ContractError:
    message = "The integer is outside -(2^53-1) to 2^53-1 and would be rounded elsewhere; send it as a string"
    return CanonicalError(message, pointer=pointer, rule="integer_range")
