"""Writing server frames as text, member by member in the order of the schema.

Ids, codes and times are made of characters that JSON leaves alone, and ids of a client were checked by pattern, so
they are set in as they are. A snapshot is set in unchanged (WSS-09): it is never parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import orjson

from orbit.model.errors import OrbitError
from orbit.model.limits import LEASE_SECONDS
from orbit.wire.frames import PROTOCOL
from orbit.wire.times import time_text


def hello_ok(
    request_id: str,
    *,
    connection_id: str,
    subscription_id: str,
    status: str,
    revision: int,
    queue_id: str,
    types: Sequence[str],
    capacity: int,
    server_time: datetime,
) -> str:
    """The answer to `hello`."""
    members = {
        "type": "hello_ok",
        "request_id": request_id,
        "protocol": PROTOCOL,
        "connection_id": connection_id,
        "subscription_id": subscription_id,
        "subscription_status": status,
        "subscription_revision": revision,
        "queue_id": queue_id,
        "types": list(types),
        "capacity": capacity,
        "lease_seconds": LEASE_SECONDS,
        "server_time": time_text(server_time),
    }
    return orjson.dumps(members).decode()


def delivery_head(pull_request_id: str, subscription_id: str) -> str:
    """What the deliveries of one pull begin with."""
    return f'{{"type":"delivery","pull_request_id":"{pull_request_id}","subscription_id":"{subscription_id}"'


def delivery(
    head: str,
    *,
    delivery_id: str,
    event_id: str,
    event_type: str,
    sequence: int,
    lease_epoch: int,
    lease_secret: str,
    lease_expires_at: str,
    attempts: int,
    attempt_budget: int,
    snapshot_json: str,
) -> str:
    """One delivery; `head` is `delivery_head` of the pull, `lease_expires_at` a time as text."""
    return (
        f'{head},"delivery_id":"{delivery_id}","event_id":"{event_id}","event_type":"{event_type}"'
        f',"sequence":{sequence},"lease_epoch":{lease_epoch},"lease_secret":"{lease_secret}"'
        f',"lease_expires_at":"{lease_expires_at}","attempts":{attempts},"attempt_budget":{attempt_budget}'
        f',"snapshot":{snapshot_json}}}'
    )


def pull_done(request_id: str, *, delivered: int, reason: str, pending_count: int, max_pending: int) -> str:
    """The end of a pull."""
    return (
        f'{{"type":"pull_done","request_id":"{request_id}","delivered":{delivered},"reason":"{reason}"'
        f',"pending_count":{pending_count},"max_pending":{max_pending}}}'
    )


def acked(request_id: str, delivery_id: str, acked_at: datetime, *, duplicate: bool) -> str:
    """The ACK counts, now or already."""
    return (
        f'{{"type":"ack_result","request_id":"{request_id}","delivery_id":"{delivery_id}","outcome":"ACKED"'
        f',"acked_at":"{time_text(acked_at)}","duplicate":{"true" if duplicate else "false"},"code":null}}'
    )


def rejected(request_id: str, delivery_id: str, code: str) -> str:
    """The ACK does not count."""
    return (
        f'{{"type":"ack_result","request_id":"{request_id}","delivery_id":"{delivery_id}","outcome":"REJECTED"'
        f',"acked_at":null,"duplicate":false,"code":"{code}"}}'
    )


def pong(request_id: str, server_time: datetime) -> str:
    """The answer to `ping`."""
    return f'{{"type":"pong","request_id":"{request_id}","server_time":"{time_text(server_time)}"}}'


def error(request_id: str | None, refused: OrbitError, *, fatal: bool) -> str:
    """A refusal; of its extensions only those that the schema names are sent."""
    members: dict[str, object] = {
        "type": "error",
        "request_id": request_id,
        "code": refused.code.value,
        "message": refused.detail,
        "fatal": fatal,
    }
    for name in ("cursor_sequence", "retained_from_sequence"):
        if name in refused.extensions:
            members[name] = refused.extensions[name]
    return orjson.dumps(members).decode()
