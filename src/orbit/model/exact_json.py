"""Exact text of JSON values (SRC-19, SDK-06): where a member's value starts and ends, how deep it nests, what it is.

A result is never parsed and written again on its way: the text that its producer sent is sliced out of the body, the
frame, the snapshot. Python's own scanner (in C) finds the ends, so that a text of 1 MiB costs milliseconds; regular
expressions step over what lies between. All of it is linear in the length of the text.

Errors are `ValueError` with a sentence that quotes no content: a body may hold secrets.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from decimal import Decimal, InvalidOperation
from itertools import accumulate
from typing import Any, Final, NoReturn, TypeVar, cast

from orbit.model.limits import JSON_DEPTH_MAX

DEPTH_AROUND_RESULT: Final = 2
"""A result lies inside its body, or inside a snapshot inside a frame; its own depth is at most `JSON_DEPTH_MAX`."""

INT_DIGITS_MAX: Final = 4300
"""Python refuses to read longer text as an int unless told otherwise; reading is quadratic in the length too."""

ValueT = TypeVar("ValueT")

_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_NAME: Final = re.compile(r'"([^"\\\x00-\x1f]*+)"[ \t\r\n]*+:[ \t\r\n]*+')
"""A member name without an escape, with the colon and the space on both sides of it."""
_COLON: Final = re.compile(r"[ \t\r\n]*+:[ \t\r\n]*+")
_BETWEEN: Final = re.compile(r"[ \t\r\n]*+([,}])[ \t\r\n]*+")
_NOT_A_BRACKET: Final = re.compile(r'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))++', re.DOTALL)
"""Everything but brackets, strings with the brackets in them included; a string may lack its end."""
_STEPS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def _no_constant(token: str) -> NoReturn:
    raise ValueError(f"{token} is not a JSON number")


def _integer(text: str) -> int | Decimal:
    """An integer without loss; as Decimal where Python refuses so many digits."""
    if len(text) <= INT_DIGITS_MAX:
        try:
            return int(text)
        except ValueError:  # a lower limit is set in this process
            pass
    return Decimal(text)


def _decimal(text: str) -> Decimal:
    """A number with a fraction or an exponent, without loss; ValueError beyond the exponents of Decimal."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():  # a context without the trap gives NaN instead of the exception
        raise ValueError("a number's exponent is beyond what Decimal holds")
    return number


_ENDS: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant)
"""Finds where a value ends; what it makes of the value is thrown away, numbers are not even read."""
_VALUES: Final = json.JSONDecoder(parse_int=_integer, parse_float=_decimal, parse_constant=_no_constant)


def depth(text: str) -> int:
    """Deepest nesting of arrays and objects; brackets inside strings do not count.

    The text need not be valid JSON: what is unbalanced is counted as it stands and refused by whoever reads it.
    """
    brackets = _NOT_A_BRACKET.sub("", text)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def raw_members(text: str) -> dict[str, str]:
    """Map each member of a JSON object to the exact text of its value, in the order of the text.

    White space around a value is not part of it. Refused with ValueError: what is not one JSON object and nothing
    else, a member that occurs twice, the constants NaN and Infinity, and nesting beyond what a result of
    `JSON_DEPTH_MAX` levels needs inside a frame.
    """
    _check_depth(text)
    try:
        return _members(text)
    except RecursionError:
        return _on_a_fresh_stack(lambda: _members(text))


def value_of(text: str) -> Any:  # noqa: ANN401 - whatever the text says
    """The value of a JSON text: integers exact, other numbers `decimal.Decimal`, the rest as `json.loads` gives it.

    Integers of more than `INT_DIGITS_MAX` digits are `Decimal` as well (SDK-06). Refused with ValueError: what is not
    one JSON value, NaN and Infinity, nesting as in `raw_members`, and an exponent beyond 10**18, which `Decimal`
    cannot hold; its text is still there.
    """
    _check_depth(text)
    try:
        return _VALUES.decode(text)
    except RecursionError:
        return _on_a_fresh_stack(lambda: _VALUES.decode(text))


def text_of(value: object) -> str:
    """The JSON text of a value, `decimal.Decimal` as the number it stands for: what `value_of` gives can be sent.

    Raises ValueError for NaN and Infinity, TypeError for what JSON does not have.
    """
    mark = secrets.token_hex(16)
    numbers: list[str] = []

    def keep(other: object) -> str:
        if not isinstance(other, Decimal):
            raise TypeError(f"{type(other).__name__} is no JSON value")
        if not other.is_finite():
            raise ValueError("NaN and Infinity are not JSON numbers")
        numbers.append(str(other))
        return mark

    text = json.dumps(value, default=keep, allow_nan=False, separators=(",", ":"))
    parts = text.split(f'"{mark}"')
    return "".join(part + number for part, number in zip(parts, [*numbers, ""], strict=True))


def _check_depth(text: str) -> None:
    most = JSON_DEPTH_MAX + DEPTH_AROUND_RESULT
    if text.count("[") + text.count("{") > most and depth(text) > most:
        raise ValueError("nested too deeply")


def _members(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = _after(_SPACE, text, 0)
    if not text.startswith("{", at):
        raise ValueError("a JSON object is expected")
    at = _after(_SPACE, text, at + 1)
    if text.startswith("}", at):
        at = _after(_SPACE, text, at + 1)
    else:
        following = ","
        while following == ",":
            name, start = _name(text, at)
            end = _end_of_value(text, start)
            if name in found:
                raise ValueError("a member occurs twice")
            found[name] = text[start:end]
            between = _BETWEEN.match(text, end)
            if between is None:
                raise ValueError(f"a comma or the end of the object is expected at character {end}")
            following, at = between[1], between.end()
    if at != len(text):
        raise ValueError(f"there is text after the object at character {at}")
    return found


def _name(text: str, at: int) -> tuple[str, int]:
    """The member name at `at` and where its value starts."""
    plain = _NAME.match(text, at)
    if plain is not None:
        return plain[1], plain.end()
    if not text.startswith('"', at):
        raise ValueError(f"a member name is expected at character {at}")
    name, end = _scan(text, at)
    colon = _COLON.match(text, end)
    if colon is None:
        raise ValueError(f"a colon is expected at character {end}")
    return cast("str", name), colon.end()


def _end_of_value(text: str, start: int) -> int:
    return _scan(text, start)[1]


def _scan(text: str, start: int) -> tuple[object, int]:
    try:
        return _ENDS.raw_decode(text, start)
    except json.JSONDecodeError as error:
        # Its own exception would carry the whole text.
        raise ValueError(f"{error.msg} at character {error.pos}") from None


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _on_a_fresh_stack(work: Callable[[], ValueT]) -> ValueT:
    """Do the work in a thread: up to Python 3.11 the scanner's depth counts together with the caller's frames.

    A caller far down its own stack would otherwise see text refused that another one reads.
    """
    outcome: Future[ValueT] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - is raised again in the caller
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="orbit-exact-json")
    thread.start()
    thread.join()
    return outcome.result()
