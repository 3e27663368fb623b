"""The event connection as an AsyncAPI 3 document, from the frames, limits and codes that the server itself uses.

`asyncapi_document` gives what is published as `docs/schemas/orbit.events.v1.asyncapi.json` (GEN-10); `reference_page`
the same for people. Tests hold both to the committed files and to a running server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from orbit.model import limits
from orbit.model.codes import CODES, ErrorCode
from orbit.wire.frames import CLIENT_FRAMES, PROTOCOL, SERVER_FRAMES
from orbit.wire.schema import frame_name, frame_schema

PATH: Final = "/v1/events/connect"
HANDSHAKE_CODES: Final = (
    ErrorCode.SUBPROTOCOL_REQUIRED,
    ErrorCode.UNAUTHENTICATED,
    ErrorCode.ACTION_NOT_ALLOWED,
    ErrorCode.NAMESPACE_DISABLED,
    ErrorCode.APPLICATION_DISABLED,
    ErrorCode.SERVICE_BUSY,
    ErrorCode.SERVICE_NOT_READY,
    ErrorCode.SERVER_SHUTTING_DOWN,
    ErrorCode.INTERNAL,
)
"""How a handshake can be refused (WSS-03)."""

NOT_FATAL: Final = (ErrorCode.PULL_IN_PROGRESS, ErrorCode.EVENT_HISTORY_EXPIRED)
"""Codes of an `error` that does not close the connection."""


@dataclass(frozen=True, slots=True)
class CloseCode:
    """A close code of section 16: what it means and what a client does then."""

    code: int
    meaning: str
    reaction: str


STOP: Final = "stop"
DEFECT: Final = "defect, stop"
RECONNECT: Final = "reconnect with backoff"

CLOSE_CODES: Final = (
    CloseCode(1000, "normal close by the client", "none"),
    CloseCode(1001, "the server is shutting down", RECONNECT),
    CloseCode(1003, "binary frame", DEFECT),
    CloseCode(1009, "frame too large", DEFECT),
    CloseCode(1011, "internal error", RECONNECT),
    CloseCode(4400, "frame that breaks the protocol, wrong first message, second `hello`", DEFECT),
    CloseCode(4401, "token unknown; also: revoked or expired during the connection", STOP),
    CloseCode(4403, "action or queue not allowed; namespace, application or subscription disabled", STOP),
    CloseCode(4404, "no such subscription, or owned by another credential", STOP),
    CloseCode(4408, "no `hello` in time, or no pong", RECONNECT),
    CloseCode(4503, "the service is busy or not ready", RECONNECT),
)

LIMITS: Final = (
    ("clientFrameBytesMax", "bytes of a client frame", limits.CLIENT_FRAME_BYTES_MAX),
    ("serverFrameBytesMax", "bytes of a server frame; set your receive limit to it", limits.SERVER_FRAME_BYTES_MAX),
    ("connectionsMax", "connections of one server process", limits.EVENT_CONNECTIONS_MAX),
    ("capacityMax", "deliveries leased to one connection", limits.CAPACITY_MAX),
    ("pullMax", "deliveries of one pull", limits.PULL_MAX),
    ("pullWaitMsMax", "milliseconds that a pull waits", limits.PULL_WAIT_MS_MAX),
    ("openPullsMax", "open pulls of one connection", 1),
    ("leaseSeconds", "seconds of a lease", limits.LEASE_SECONDS),
    ("acksPerTransactionMax", "ACKs settled together", limits.ACKS_PER_TRANSACTION_MAX),
    ("helloSeconds", "seconds until `hello` must have come", limits.HELLO_SECONDS),
    ("pingIntervalSeconds", "seconds between WebSocket pings of the server", limits.PING_INTERVAL_SECONDS),
    ("pongSeconds", "seconds until the pong must have come", limits.PONG_SECONDS),
    ("rightsSeconds", "seconds within which a lost right closes an idle connection", limits.RIGHTS_CHECK_SECONDS),
    ("writeSeconds", "seconds within which a client must read what it is sent", limits.WRITE_SECONDS),
    ("shutdownSeconds", "seconds after which a stopping server cuts a connection", limits.SHUTDOWN_SECONDS),
)


def asyncapi_document() -> dict[str, Any]:
    """The AsyncAPI document, version 3.0.0."""
    schema = frame_schema()
    return {
        "asyncapi": "3.0.0",
        "id": f"urn:orbit:asyncapi:{PROTOCOL}",
        "info": {
            "title": PROTOCOL,
            "version": "1.0.0",
            "description": "Durable result subscriptions: pull, delivery with a lease, acknowledgement with its proof.",
        },
        "defaultContentType": "application/json",
        "servers": {
            "orbit": {
                "host": "localhost:8080",
                "protocol": "wss",
                "description": "TLS; plain `ws` only on loopback, for development.",
                "security": [{"$ref": "#/components/securitySchemes/bearer"}],
            }
        },
        "channels": {"events": _channel()},
        "operations": {
            "fromClient": _operation("receive", CLIENT_FRAMES, "Frames that a client sends."),
            "fromServer": _operation("send", SERVER_FRAMES, "Frames that the server sends."),
        },
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "In the handshake's header only; a token in the query string is not accepted.",
                }
            },
            "messages": {frame_name(frame): _message(frame) for frame in (*CLIENT_FRAMES, *SERVER_FRAMES)},
            "schemas": _placed(schema["$defs"]),
        },
    }


def asyncapi_text() -> str:
    """The committed text of the document."""
    return json.dumps(asyncapi_document(), indent=2, ensure_ascii=False) + "\n"


def _channel() -> dict[str, Any]:
    frames = (*CLIENT_FRAMES, *SERVER_FRAMES)
    return {
        "address": PATH,
        "description": "One JSON object per text frame; no compression.",
        "messages": {frame_name(frame): {"$ref": f"#/components/messages/{frame_name(frame)}"} for frame in frames},
        "bindings": {
            "ws": {
                "method": "GET",
                "headers": {
                    "type": "object",
                    "required": ["Authorization", "Sec-WebSocket-Protocol"],
                    "properties": {
                        "Authorization": {"type": "string", "pattern": "^[Bb]earer orbit_[A-Za-z0-9_-]{43}$"},
                        "Sec-WebSocket-Protocol": {"const": PROTOCOL},
                    },
                },
                "bindingVersion": "0.1.0",
            }
        },
        "x-limits": {name: value for name, _, value in LIMITS},
        "x-handshake-refusals": [{"status": CODES[code].status, "code": str(code)} for code in HANDSHAKE_CODES],
        "x-close-codes": [
            {"code": close.code, "meaning": close.meaning, "reaction": close.reaction} for close in CLOSE_CODES
        ],
        "x-error-codes": [
            {"code": str(code), "fatal": close is not None, "closeCode": close} for code, close in error_codes()
        ],
    }


def error_codes() -> Iterable[tuple[ErrorCode, int | None]]:
    """Codes of `error` frames with the close code that follows; None when the connection stays."""
    for code, facts in CODES.items():
        if code in NOT_FATAL:
            yield code, None
        elif facts.close is not None and code is not ErrorCode.REQUEST_TOO_LARGE:  # closes without an `error`
            yield code, facts.close


def _operation(action: str, frames: Iterable[type[BaseModel]], summary: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": "#/channels/events"},
        "summary": summary,
        "messages": [{"$ref": f"#/channels/events/messages/{frame_name(frame)}"} for frame in frames],
    }


def _message(frame: type[BaseModel]) -> dict[str, Any]:
    name = frame_name(frame)
    return {
        "name": name,
        "summary": _summary(frame),
        "contentType": "application/json",
        "payload": {
            "schemaFormat": "application/schema+json;version=draft-2020-12",
            "schema": {"$ref": f"#/components/schemas/{name}"},
        },
    }


def _summary(frame: type[BaseModel]) -> str:
    """The first line of a model's docstring, without the requirement ids that only we read."""
    return re.sub(r" \([A-Z]{3}-[^)]*\)", "", (frame.__doc__ or "").strip())


def _placed(definitions: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """The definitions with their references turned to where this document keeps them."""
    return json.loads(json.dumps(definitions).replace('"#/$defs/', '"#/components/schemas/'))


@dataclass(frozen=True, slots=True)
class _Table:
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        lines = [self.head, ("---",) * len(self.head), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def reference_page() -> str:
    """The page `docs/reference/orbit-events-v1.md`."""
    frames = [(frame, "client") for frame in CLIENT_FRAMES] + [(frame, "server") for frame in SERVER_FRAMES]
    messages = _Table(
        ("Message", "From", "Members besides `type`", "What it is"),
        tuple((f"`{frame_name(frame)}`", side, _members(frame), _summary(frame)) for frame, side in frames),
    )
    refusals = _Table(("Status", "Code"), tuple((str(CODES[code].status), f"`{code}`") for code in HANDSHAKE_CODES))
    bounds = _Table(("Limit", "Value"), tuple((text, f"{int(value):,}") for _, text, value in LIMITS))
    errors = _Table(
        ("Code", "Means", "Then"),
        tuple(
            (f"`{code}`", CODES[code].title, "the connection stays" if close is None else f"close {close}")
            for code, close in error_codes()
        ),
    )
    closes = _Table(
        ("Close code", "Meaning", "A client"),
        tuple((str(close.code), close.meaning, close.reaction) for close in CLOSE_CODES),
    )
    return _PAGE.format(
        path=PATH,
        protocol=PROTOCOL,
        messages=messages.text(),
        refusals=refusals.text(),
        limits=bounds.text(),
        errors=errors.text(),
        closes=closes.text(),
    )


def _members(frame: type[BaseModel]) -> str:
    return ", ".join(
        f"`{name}`" + ("" if field.is_required() else " (optional)")
        for name, field in frame.model_fields.items()
        if name != "type"
    )


_PAGE: Final = """<!-- Generated from src/orbit/wire; `python -m orbit.wire.publish` writes it again. -->

# Event connection `{protocol}`

A WebSocket at `{path}` that carries results to a consumer: the consumer gives credit with `pull`, gets each result as
a `delivery` under a lease of 30 seconds, stores it, and gives the proof back with `ack`. What is not acknowledged comes
again. Formal documents:
[JSON Schema](https://json-schema.org/draft/2020-12) of every frame in `docs/schemas/orbit.events.v1.schema.json`,
AsyncAPI 3 in `docs/schemas/orbit.events.v1.asyncapi.json`.

## Connecting

Send `Sec-WebSocket-Protocol: {protocol}` and `Authorization: Bearer <token>`. A token in the query string is not
accepted. A browser page of another origin is refused unless the operator allows it. Compression is not offered: frames
carry secrets. A refused handshake is an HTTP answer with a problem (`application/problem+json`):

{refusals}

## Frames

One JSON object per text frame. A client frame with an unknown member, or one that is named twice, is refused; a client
ignores members of server frames that it does not know.

{messages}

- `ack_result` frames come in the order of their `ack` frames; ACKs that arrive together are settled together.
- A `pull` ends with `pull_done`, also when nothing came; without an open pull nothing is delivered.
- The last member of a `delivery` is `snapshot`: the stored text, byte for byte. Take exact numbers from the text.
- Closing a connection changes no delivery. A proof stays good on any connection of the same credential until the
  delivery is leased again.

## Limits

{limits}

## Errors

{errors}

## Close codes

{closes}
"""
