"""What a task input or a result must be before any database sees it (SRC-19, SRC-20)."""

from __future__ import annotations

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.exact_json import depth, raw_members
from orbit.model.limits import JSON_DEPTH_MAX, RESULT_BYTES_MAX


def checked_text(text: str, too_large: ErrorCode) -> str:
    """Return the exact text of one JSON value, without the white space around it, which is no part of it.

    Raises:
        OrbitError: `too_large` above 1,048,576 bytes; MALFORMED_REQUEST for what is no JSON value, not one value, not
            UTF-8, or nested deeper than 256 levels.
    """
    try:
        members = raw_members('{"value":' + text + "}")
        exact = members["value"]
        size = len(exact.encode())
    except ValueError:
        raise OrbitError(ErrorCode.MALFORMED_REQUEST, "the text is not one JSON value in UTF-8") from None
    if len(members) > 1 or depth(exact) > JSON_DEPTH_MAX:
        raise OrbitError(
            ErrorCode.MALFORMED_REQUEST, f"the text is not one value, or nested deeper than {JSON_DEPTH_MAX} levels"
        )
    if size > RESULT_BYTES_MAX:
        raise OrbitError(too_large, f"the text has {size} bytes, more than {RESULT_BYTES_MAX}")
    return exact
