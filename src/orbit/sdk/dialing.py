"""Opening the event connection with the `websockets` library, asynchronous and synchronous, and what its ends mean.

Compression is off, because frames carry secrets; a frame may have the 2 MiB that the server may send (WSS-16). The
library writes frames and headers into its own log at debug level, so it gets a logger that has no debug level (SDK-08).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, cast

from websockets.asyncio.client import ClientConnection as AsyncSocket
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed as SocketClosed
from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidStatus
from websockets.sync.client import ClientConnection as Socket
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from orbit.model.codes import CODES, ErrorCode
from orbit.model.limits import PING_INTERVAL_SECONDS, PONG_SECONDS, SERVER_FRAME_BYTES_MAX
from orbit.sdk.addresses import CLIENT_NAME, Access
from orbit.sdk.answers import error_in
from orbit.sdk.errors import ConnectionClosed, OrbitApiError, OrbitSdkError, Unreachable
from orbit.sdk.frames import BadFrame
from orbit.sdk.waiting import retry_after
from orbit.wire.frames import PROTOCOL

LOST: Final = 1006
"""The code of a connection that ended without one (RFC 6455)."""
BROKEN: Final = 1002
"""The code with which a connection is closed whose other side does not keep to the protocol."""
CLOSE_SECONDS: Final = 5.0

RECONNECT_CODES: Final = frozenset({1000, 1001, 1005, LOST, 1011, 1012, 1013, 1014, 4408, 4503})
"""Reconnect with backoff (section 16): the server or the way to it was at fault; the rest would only happen again."""


_PASSING: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
"""What something between client and server may answer, and will not answer for ever."""


class _QuietLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger without a debug level, where the library would write frames and headers."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the name that logging calls
        return level > logging.DEBUG and super().isEnabledFor(level)


class _Connect(connect_async):
    """Follows no redirect: the token is for the host that was named."""

    def process_redirect(self, exc: Exception) -> Exception:
        return exc


def _options(access: Access, timeout: float) -> dict[str, Any]:
    return {
        "subprotocols": [Subprotocol(PROTOCOL)],
        "additional_headers": access.headers(),
        "user_agent_header": CLIENT_NAME,
        "compression": None,
        "max_size": SERVER_FRAME_BYTES_MAX,
        "open_timeout": timeout,
        "close_timeout": CLOSE_SECONDS,
        "ping_interval": PING_INTERVAL_SECONDS,
        "ping_timeout": PONG_SECONDS,
        "proxy": None if access.loopback else True,
        "logger": _QuietLogger(logging.getLogger("orbit.sdk.socket")),
    }


async def dial_async(access: Access, timeout: float) -> AsyncSocket:  # noqa: ASYNC109 - is the library's own
    """An open socket that speaks the protocol; raises OrbitApiError or Unreachable."""
    try:
        socket = await _Connect(access.events_url, **_options(access, timeout))
    except (OSError, InvalidHandshake, InvalidMessage, EOFError) as error:
        raise _refusal(error) from error
    if socket.subprotocol != PROTOCOL:
        await socket.close()
        raise _wrong_protocol()
    return socket


def dial(access: Access, timeout: float) -> Socket:
    """As `dial_async`."""
    try:
        # Entered at once: what newer versions of the library give before that is no socket yet.
        socket = cast("Callable[..., Socket]", connect)(access.events_url, **_options(access, timeout)).__enter__()
    except (OSError, InvalidHandshake, InvalidMessage, EOFError) as error:
        raise _refusal(error) from error
    if socket.subprotocol != PROTOCOL:
        socket.close()
        raise _wrong_protocol()
    return socket


def _wrong_protocol() -> OrbitApiError:
    return OrbitApiError(101, ErrorCode.SUBPROTOCOL_REQUIRED, f"the server does not speak {PROTOCOL} at this address")


def _refusal(error: Exception) -> OrbitSdkError:
    if isinstance(error, InvalidStatus):
        response = error.response
        refused = error_in(response.status_code, response.headers, bytes(response.body or b""))
        refused.__cause__ = error
        return refused
    return Unreachable(f"the event connection cannot be opened: {type(error).__name__}")


def pause_asked_by(error: Exception) -> float:
    """Seconds that the server which refused the handshake asks to wait; 0 where it does not."""
    cause = error.__cause__
    return retry_after(cause.response.headers) if isinstance(cause, InvalidStatus) else 0.0


def closing(error: SocketClosed, problem: str | None) -> ConnectionClosed:
    """What the end of a socket means; the fatal error that came before it counts more than how it was closed."""
    if problem is not None:
        return ended_by(problem)
    close = error.rcvd or error.sent
    return ConnectionClosed(LOST if close is None else close.code)


def ended_by(problem: str) -> ConnectionClosed:
    """The end of a connection after a fatal error, whether or not the close frame arrived."""
    code = CODES[ErrorCode(problem)].close if problem in CODES else None
    return ConnectionClosed(LOST if code is None else code, problem)


def broken(error: BadFrame) -> ConnectionClosed:
    """The end of a connection whose server does not keep to the protocol."""
    closed = ConnectionClosed(BROKEN)
    closed.__cause__ = error
    return closed


def is_terminal(error: OrbitSdkError) -> bool:
    """Whether the automatic consumer stops: it would meet the same again (SDK-14)."""
    if isinstance(error, ConnectionClosed):
        return error.code not in RECONNECT_CODES
    if isinstance(error, OrbitApiError):
        return error.status < HTTPStatus.INTERNAL_SERVER_ERROR and error.status not in _PASSING
    return False
