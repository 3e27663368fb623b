"""What uvicorn must be told for `orbit.events.v1`; every server that carries the event endpoint uses it."""

from __future__ import annotations

from typing import TypedDict

from orbit.model.limits import CLIENT_FRAME_BYTES_MAX, PING_INTERVAL_SECONDS, PONG_SECONDS
from orbit.server.ws.protocol import EventSocketProtocol


class WebSocketOptions(TypedDict):
    """Keyword arguments of `uvicorn.Config`; times are seconds."""

    ws: type[EventSocketProtocol]
    ws_max_size: int
    ws_ping_interval: float
    ws_ping_timeout: float
    ws_per_message_deflate: bool


def ws_options(*, ping_interval: float = PING_INTERVAL_SECONDS, pong_timeout: float = PONG_SECONDS) -> WebSocketOptions:
    """The options: limits of frames and pongs (WSS-04, WSS-12); no compression, for frames carry secrets (WSS-16)."""
    return WebSocketOptions(
        ws=EventSocketProtocol,
        ws_max_size=CLIENT_FRAME_BYTES_MAX,
        ws_ping_interval=ping_interval,
        ws_ping_timeout=pong_timeout,
        ws_per_message_deflate=False,
    )
