"""What requests say in headers: who asks, and under which idempotency key (API-03, AUT-14, IDM-07)."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import HTTPConnection, Request

from orbit.access.token import TokenDigest, digest_of
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.limits import IDEMPOTENCY_KEY_LENGTH_MAX
from orbit.wire.strict_body import invalid_member

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
KEY_PATTERN: Final = rf"^[\x21-\x7e]{{1,{IDEMPOTENCY_KEY_LENGTH_MAX}}}$"
_KEY: Final = re.compile(KEY_PATTERN.removeprefix("^").removesuffix("$"), re.ASCII)


def bearer(request: HTTPConnection) -> TokenDigest:
    """The digest of the caller's token; whether it is known is decided by the transaction that does the work.

    Raises:
        OrbitError: UNAUTHENTICATED no token, more than one, or none of our form.
    """
    given = request.headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    digest = digest_of(token.strip(" ")) if scheme.lower() == "bearer" else None
    if digest is None:
        raise OrbitError(ErrorCode.UNAUTHENTICATED)
    return digest


def idempotency_key(request: Request) -> str:
    """The key under which the request may be repeated.

    Raises:
        OrbitError: IDEMPOTENCY_KEY_REQUIRED it is missing, VALIDATION_FAILED it is malformed or given twice.
    """
    given = request.headers.getlist(IDEMPOTENCY_KEY)
    if not given:
        raise OrbitError(ErrorCode.IDEMPOTENCY_KEY_REQUIRED)
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        message = f"one value of 1 to {IDEMPOTENCY_KEY_LENGTH_MAX} visible ASCII characters is expected"
        raise invalid_member(IDEMPOTENCY_KEY, message)
    return given[0]
