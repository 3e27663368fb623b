"""Opaque cursors of lists (API-08, F49).

A cursor is the key of the last row of a page, unique in its list, with a code over what it belongs to: the list, its
filters and the caller, by HMAC-SHA256 under the digest of the caller's token. A cursor of another list, filter, owner
or form therefore does not verify; one that its own owner makes up can only point elsewhere in the owner's own list.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from datetime import UTC, datetime
from typing import Any, Final, cast

from orbit.access.token import TokenDigest
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.limits import SEQUENCE_MAX
from orbit.server.http.query import CURSOR_LENGTH_MAX

_FORM: Final = "orbit.cursor.v1"
_CODE_BYTES: Final = 16
_ID_LENGTH_MAX: Final = 64


class CursorScope:
    """What the cursors of one request belong to."""

    def __init__(self, token: TokenDigest, *parts: object) -> None:
        self._key = token.sha256
        self._parts = [_FORM, *parts]

    def write(self, *key: str | int) -> str:
        """The cursor that continues after the row with this key."""
        return base64.urlsafe_b64encode(self._code(list(key)) + _bytes(list(key))).decode().rstrip("=")

    def read(self, cursor: str) -> list[Any]:
        """The key in a cursor.

        Raises:
            OrbitError: INVALID_CURSOR it was not made for this request.
        """
        try:
            if not cursor.isascii() or len(cursor) > CURSOR_LENGTH_MAX:
                raise ValueError(cursor)
            data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            code, text = data[:_CODE_BYTES], data[_CODE_BYTES:]
            key = json.loads(text)
        except (ValueError, binascii.Error, RecursionError):
            raise OrbitError(ErrorCode.INVALID_CURSOR) from None
        if not isinstance(key, list) or not hmac.compare_digest(code, self._code(cast("list[Any]", key))):
            raise OrbitError(ErrorCode.INVALID_CURSOR)
        return cast("list[Any]", key)

    def _code(self, key: list[Any]) -> bytes:
        return hmac.digest(self._key, _bytes([*self._parts, key]), "sha256")[:_CODE_BYTES]


def read_time_key(scope: CursorScope, cursor: str) -> tuple[datetime, str]:
    """The key of a list in the order of creation: time and id."""
    key = scope.read(cursor)
    match key:
        case [str(at), str(row_id)] if len(row_id) <= _ID_LENGTH_MAX and row_id.isprintable():
            try:
                return datetime.fromisoformat(at).astimezone(UTC), row_id
            except (ValueError, OverflowError):
                pass
        case _:
            pass
    raise OrbitError(ErrorCode.INVALID_CURSOR)


def read_sequence_key(scope: CursorScope, cursor: str) -> int:
    """The key of a list in the order of sequence."""
    match scope.read(cursor):
        case [int(sequence)] if not isinstance(sequence, bool) and 0 <= sequence <= SEQUENCE_MAX:
            return sequence
        case _:
            raise OrbitError(ErrorCode.INVALID_CURSOR)


def _bytes(value: list[Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()
