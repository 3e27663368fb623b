"""Reading a request body with a limit on its type, its bytes and its time, before anything else is done with it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect, Request

from seapost.server.problems import Refusal

DIGITS_MAX: Final = 18


async def read_body(request: Request, *, bytes_max: int, seconds_max: float) -> bytes:
    """The body of a JSON request.

    Raises:
        Refusal: 415 another type or a content coding, 413 too large, 408 too slow, 400 cut off.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "Send the body uncompressed.")
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:DIGITS_MAX]) > bytes_max:
        raise _too_large(bytes_max)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds_max):
            async for part in request.stream():
                body += part
                if len(body) > bytes_max:
                    raise _too_large(bytes_max)
    except TimeoutError:
        raise Refusal(HTTPStatus.REQUEST_TIMEOUT, "request-timeout", headers={"connection": "close"}) from None
    except ClientDisconnect:
        raise Refusal(HTTPStatus.BAD_REQUEST, "invalid-request", "The body was cut off.") from None
    return bytes(body)


def _too_large(bytes_max: int) -> Refusal:
    return Refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "content-too-large",
        f"At most {bytes_max} bytes are taken.",
        headers={"connection": "close"},
    )
