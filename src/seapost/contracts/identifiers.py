"""The alphabets of names and identifiers, checked once at the boundary and never repaired (F11).

A *name* is chosen by a programmer (event type, producer, destination) and has a tight ASCII alphabet. An
*identifier* is chosen by somebody's data (aggregate id, tenant id, correlation id): any script, but only
in Unicode normalisation form C, without surrounding white space and without control or format characters.
Two spellings of one identifier can therefore never exist side by side, and nobody is surprised by a
silent rewrite.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from seapost.model.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable

IDENTIFIER_LENGTH_MAX: Final = 200
EVENT_TYPE_LENGTH_MAX: Final = 200
NAME_LENGTH_MAX: Final = 100
AGGREGATE_KIND_LENGTH_MAX: Final = 200
VERSION_LENGTH_MAX: Final = 32
UUID_VERSION: Final = 7

EVENT_TYPE_PATTERN: Final = r"^[a-z][a-z0-9._-]*(@[0-9]+(\.[0-9]+)*)?$"
VERSION_PATTERN: Final = r"^[0-9]+(\.[0-9]+)*$"
NAME_PATTERN: Final = r"^[a-z][a-z0-9_.-]*$"
DIGEST_PATTERN: Final = r"^[0-9a-f]{64}$"
EVENT_ID_PATTERN: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
TIMESTAMP_PATTERN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"
TRACEPARENT_PATTERN: Final = r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"

# Cc: control, Cf: format (zero-width space, direction marks), Cs: half a surrogate pair.
_FORBIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs"})


def _matcher(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern.removeprefix("^").removesuffix("$"), re.ASCII).fullmatch


_event_type = _matcher(EVENT_TYPE_PATTERN)
_version = _matcher(VERSION_PATTERN)
_name = _matcher(NAME_PATTERN)
_event_id = _matcher(EVENT_ID_PATTERN)
_timestamp = _matcher(TIMESTAMP_PATTERN)
_traceparent = _matcher(TRACEPARENT_PATTERN)


def check_event_type(value: str, pointer: str = "/eventType") -> str:
    """Return `value`; raise `ContractError` when it is no event type, such as `order.placed@1`."""
    return _checked(value, _event_type, EVENT_TYPE_LENGTH_MAX, "event_type", pointer)


def check_version(value: str, pointer: str = "/eventSchemaVersion") -> str:
    """Return `value`; raise `ContractError` when it is no schema version, a string such as `1` or `2.0` (AMB-14)."""
    return _checked(value, _version, VERSION_LENGTH_MAX, "schema_version", pointer)


def check_name(value: str, pointer: str = "", length_max: int = NAME_LENGTH_MAX) -> str:
    """Return `value`; raise `ContractError` when it is no name of a producer, destination or consumer."""
    return _checked(value, _name, length_max, "name", pointer)


def check_identifier(value: str, pointer: str = "") -> str:
    """Return `value`; raise `ContractError` when it is no identifier (F11)."""
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
        message = f"An identifier must be a string, not {type(value).__name__}"
        raise ContractError(message, pointer=pointer, rule="wrong_type")
    problem = identifier_problem(value)
    if problem is not None:
        raise ContractError(problem, pointer=pointer, rule="identifier")
    return value


def identifier_problem(value: str) -> str | None:
    """What keeps `value` from being an identifier, as a sentence; None when nothing does."""
    if not 1 <= len(value) <= IDENTIFIER_LENGTH_MAX:
        return f"An identifier has 1 to {IDENTIFIER_LENGTH_MAX} characters, not {len(value)}"
    if value[0].isspace() or value[-1].isspace():
        return "An identifier has no white space at either end"
    if value.isascii() and value.isprintable():
        return None
    if any(unicodedata.category(character) in _FORBIDDEN_CATEGORIES for character in value):
        return "An identifier holds no control or format characters"
    if not unicodedata.is_normalized("NFC", value):
        return "An identifier is written in Unicode normalisation form C"
    return None


def check_event_id(value: str, pointer: str = "/eventId") -> UUID:
    """Return the UUID; raise `ContractError` unless it is a UUIDv7 in canonical lower-case spelling."""
    if not isinstance(value, str) or _event_id(value) is None:  # pyright: ignore[reportUnnecessaryIsInstance]
        message = "An event id is a UUID of version 7 in lower-case canonical spelling"
        raise ContractError(message, pointer=pointer, rule="event_id")
    return UUID(value)


def check_traceparent(value: str, pointer: str = "/correlation/traceparent") -> str:
    """Return `value`; raise `ContractError` unless it is a W3C Trace Context `traceparent`."""
    if not is_traceparent(value):
        message = "A traceparent has the form of W3C Trace Context: version-traceid-parentid-flags"
        raise ContractError(message, pointer=pointer, rule="traceparent")
    return value


def is_traceparent(value: object) -> bool:
    """Whether `value` is a `traceparent` whose version, trace id and parent id are all valid."""
    if not isinstance(value, str) or _traceparent(value) is None:
        return False
    version, trace_id, parent_id, _ = value.split("-")
    return version != "ff" and trace_id.strip("0") != "" and parent_id.strip("0") != ""


def write_timestamp(moment: datetime, pointer: str = "/occurredAt") -> str:
    """Write a moment in the one spelling contracts use: RFC 3339, UTC, six decimals, `Z`.

    Raises:
        ContractError: the moment has no zone, or is outside the years 1 to 9999 in UTC.
    """
    if moment.tzinfo is None or moment.utcoffset() is None:
        message = "A time needs a zone; pass an aware datetime"
        raise ContractError(message, pointer=pointer, rule="time_without_zone")
    try:
        return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
    except OverflowError:
        message = "The time is outside the years 1 to 9999 in UTC"
        raise ContractError(message, pointer=pointer, rule="timestamp") from None


def read_timestamp(text: str, pointer: str = "/occurredAt") -> datetime:
    """Read the spelling of `write_timestamp`; any other spelling of the same moment is refused.

    Raises:
        ContractError: another spelling, or a date that does not exist.
    """
    if isinstance(text, str) and _timestamp(text) is not None:  # pyright: ignore[reportUnnecessaryIsInstance]
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    message = "A time is written as YYYY-MM-DDTHH:MM:SS.ffffffZ, in UTC"
    raise ContractError(message, pointer=pointer, rule="timestamp")


def _checked(value: str, matches: Callable[[str], object], length_max: int, rule: str, pointer: str) -> str:
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
        message = f"This must be a string, not {type(value).__name__}"
        raise ContractError(message, pointer=pointer, rule="wrong_type")
    if len(value) > length_max or matches(value) is None:
        message = f"{_FORMS[rule]}; at most {length_max} characters"
        raise ContractError(message, pointer=pointer, rule=rule)
    return value


_FORMS: Final = {
    "event_type": "An event type is a lower-case letter, then letters, digits, '.', '_', '-', perhaps '@' and version",
    "schema_version": "A schema version is digits, perhaps with points between them, as a string",
    "name": "A name is a lower-case letter, then letters, digits, '_', '.' and '-'",
}
