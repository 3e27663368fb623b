"""Reading a request body with a limit on its type, its bytes and its time, before anything else is done with it."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect, Request

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError

BODY_SECONDS_MAX: Final = 30.0
DISCARDED_BYTES_MAX: Final = 8_388_608
"""How much of a body that is too large is still taken off the wire, so that its sender reads the answer and not a
reset connection."""
DISCARD_SECONDS_MAX: Final = 5.0
_DIGITS_MAX: Final = 18


class BodyCutOff(Exception):
    """The client went away before its body was complete; there is nobody to answer."""


async def read_body(request: Request, *, bytes_max: int) -> bytes:
    """The body of a JSON request.

    Raises:
        OrbitError: UNSUPPORTED_MEDIA_TYPE another type or a content coding, REQUEST_TOO_LARGE too many bytes,
            MALFORMED_REQUEST it did not arrive in time.
        BodyCutOff: the client disconnected.
    """
    _check_type(request)
    announced = request.headers.get("content-length", "")
    too_large = announced.isascii() and announced.isdigit() and int(announced[:_DIGITS_MAX]) > bytes_max
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(DISCARD_SECONDS_MAX if too_large else BODY_SECONDS_MAX):
            async for part in request.stream():
                size += len(part)
                if size > DISCARDED_BYTES_MAX:
                    too_large = True
                    break
                if size > bytes_max:
                    too_large = True
                    parts.clear()
                elif not too_large:
                    parts.append(part)
    except TimeoutError:
        if not too_large:
            raise OrbitError(ErrorCode.MALFORMED_REQUEST, "The body did not arrive in time.") from None
    except ClientDisconnect:
        raise BodyCutOff from None
    if too_large:
        raise OrbitError(ErrorCode.REQUEST_TOO_LARGE, f"At most {bytes_max} bytes are taken here.")
    return b"".join(parts)


def _check_type(request: Request) -> None:
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower()
    if kind.strip().lower() != "application/json" or charset not in {"", "charset=utf-8", 'charset="utf-8"'}:
        raise OrbitError(ErrorCode.UNSUPPORTED_MEDIA_TYPE)
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise OrbitError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Send the body uncompressed.")
