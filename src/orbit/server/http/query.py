"""Query parameters, read as strictly as bodies: no unknown one, none twice unless it may be repeated (API-04, API-08).

No message repeats a name or a value that came in the address: people put tokens there, and they are not accepted
anywhere but in the header (AUT-14, F87).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from orbit.model.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from orbit.wire.bodies import NAME_LENGTH_MAX
from orbit.wire.strict_body import invalid, invalid_member

PARAMETERS_MAX: Final = 20
CURSOR_LENGTH_MAX: Final = 512
_NUMBER: Final = re.compile(r"[0-9]{1,6}", re.ASCII)
_NAME: Final = re.compile(rf"[^\x00-\x1f\x7f]{{1,{NAME_LENGTH_MAX}}}")

Query = Mapping[str, list[str]]


def read_query(request: Request, accepted: Collection[str], *, repeatable: Collection[str] = ()) -> Query:
    """The values of each accepted parameter, in the order given.

    Raises:
        OrbitError: VALIDATION_FAILED an unknown or a repeated parameter, or not UTF-8.
    """
    text = str(request.scope["query_string"], "latin-1")
    if not text:
        return {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX)
    except ValueError:
        message = f"at most {PARAMETERS_MAX} parameters in UTF-8 are expected"
        raise invalid([{"pointer": "?", "message": message}], "The query breaks its form.") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in accepted:
            raise invalid_member("?", "there is no such query parameter here")
        if name in found and name not in repeatable:
            raise invalid_member(name, "the parameter stands twice")
        found.setdefault(name, []).append(value)
    return found


def read_limit(query: Query) -> int:
    """How many items a page has: `limit`, 1 to 200."""
    if "limit" not in query:
        return PAGE_SIZE_DEFAULT
    text = query["limit"][0]
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= PAGE_SIZE_MAX:
        raise invalid_member("limit", f"an integer from 1 to {PAGE_SIZE_MAX} is expected")
    return int(text)


def read_name(query: Query, name: str) -> str | None:
    """The name of a queue, or None when the parameter is missing."""
    if name not in query:
        return None
    if not _NAME.fullmatch(query[name][0]):
        raise invalid_member(name, f"1 to {NAME_LENGTH_MAX} printable characters are expected")
    return query[name][0]


def read_choices(query: Query, name: str, choices: Collection[str]) -> tuple[str, ...]:
    """The values of a parameter that takes some of `choices`, each once and in their order."""
    given = query.get(name, [])
    if not set(given).issubset(choices):
        raise invalid_member(name, f"one of {', '.join(choices)} is expected")
    return tuple(choice for choice in choices if choice in given)


def read_cursor(query: Query) -> str | None:
    """The opaque cursor, unchecked."""
    return query["cursor"][0] if "cursor" in query else None
