"""Frames of `orbit.events.v1` to text and back, as the models of `orbit.wire.frames` say.

A `delivery` and an `ack_result` in the compact layout that the server writes are read by one regular expression each.
It accepts nothing that the model refuses (a test compares them); what it does not match is read by the model. The
snapshot is the exception: it is looked at when the handler asks for it, so that a result of 1 MiB costs nothing to
whoever only passes its text on, and no result can stop a connection.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Final, NamedTuple

from pydantic import ValidationError

from orbit.model.exact_json import raw_members, value_of
from orbit.model.limits import ATTEMPT_BUDGET_MAX, SEQUENCE_MAX
from orbit.sdk.values import Proof, ReceivedEvent
from orbit.wire.frames import SERVER_FRAME, Delivery, ErrorFrame, HelloOk, Pong, PullDone
from orbit.wire.frames import AckResult as AckResultFrame


class AckAnswer(NamedTuple):
    """An `ack_result`; `acked_at` where it was accepted, else `code` says why not."""

    request_id: str
    delivery_id: str
    acked_at: str | None
    duplicate: bool
    code: str | None


Incoming = ReceivedEvent | HelloOk | PullDone | AckAnswer | ErrorFrame | Pong

_ID: Final = "[A-Za-z0-9._-]{1,64}"
_TIME: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z"
_NUMBER: Final = "[1-9][0-9]{0,18}"
_DELIVERY: Final = re.compile(
    rf'\{{"type":"delivery","pull_request_id":"{_ID}","subscription_id":"({_ID})","delivery_id":"({_ID})",'
    rf'"event_id":"({_ID})","event_type":"(task\.(?:succeeded|failed|cancelled|needs_review))",'
    rf'"sequence":({_NUMBER}),"lease_epoch":({_NUMBER}),"lease_secret":"([A-Za-z0-9_-]{{43}})",'
    rf'"lease_expires_at":"({_TIME})","attempts":({_NUMBER}),"attempt_budget":([1-9][0-9]{{0,6}}),"snapshot":(?=\{{)'
)
_ACKED: Final = re.compile(
    rf'\{{"type":"ack_result","request_id":"({_ID})","delivery_id":"({_ID})","outcome":"ACKED",'
    rf'"acked_at":"({_TIME})","duplicate":(true|false),"code":null\}}'
)
_KNOWN_TYPES: Final = frozenset({"hello_ok", "delivery", "pull_done", "ack_result", "error", "pong"})


class BadFrame(ValueError):
    """The server sent what the protocol does not know."""


def hello(request_id: str, subscription_id: str, capacity: int, client: str) -> str:
    """Text of the first frame."""
    return _text(type="hello", request_id=request_id, subscription_id=subscription_id, capacity=capacity, client=client)


def pull(request_id: str, most: int, wait: float) -> str:
    """Text of a `pull`; `wait` in seconds."""
    return f'{{"type":"pull","request_id":"{request_id}","max":{most},"wait_ms":{round(wait * 1000)}}}'


def ack(request_id: str, proof: Proof) -> str:
    """Text of an `ack`."""
    return (
        f'{{"type":"ack","request_id":"{request_id}","delivery_id":{json.dumps(proof.delivery_id)},'
        f'"lease_epoch":{proof.lease_epoch},"lease_secret":{json.dumps(proof.lease_secret)}}}'
    )


def ping(request_id: str) -> str:
    """Text of a `ping`."""
    return _text(type="ping", request_id=request_id)


def read(text: str | bytes) -> Incoming | None:
    """What a server frame says; None for a type of a later version. Raises BadFrame."""
    if not isinstance(text, str):
        raise BadFrame("the server sent a binary frame")
    acked = _ACKED.fullmatch(text)
    if acked is not None:
        request_id, delivery_id, acked_at, duplicate = acked.groups()
        return AckAnswer(request_id, delivery_id, acked_at, duplicate == "true", None)
    return _delivery(text) or _by_model(text)


def _delivery(text: str) -> ReceivedEvent | None:
    match = _DELIVERY.match(text)
    if match is None:
        return None
    subscription_id, delivery_id, event_id, event_type, sequence, epoch, secret, until, attempts, budget = (
        match.groups()
    )
    numbers = int(sequence), int(epoch), int(attempts), int(budget)
    if max(numbers) > SEQUENCE_MAX or numbers[3] > ATTEMPT_BUDGET_MAX or not text.endswith("}}"):
        return None
    return ReceivedEvent(
        subscription_id=subscription_id,
        delivery_id=delivery_id,
        event_id=event_id,
        event_type=event_type,
        sequence=numbers[0],
        lease_epoch=numbers[1],
        lease_secret=secret,
        lease_expires_at=until,
        attempts=numbers[2],
        attempt_budget=numbers[3],
        tail=text[match.end() :],
    )


def _by_model(text: str) -> Incoming | None:
    try:
        members = raw_members(text)
        values = {name: _plain(value_of(value)) for name, value in members.items()}
        if values.get("type") not in _KNOWN_TYPES and isinstance(values.get("type"), str):
            return None
        frame = SERVER_FRAME.validate_python(values)
    except ValidationError as error:
        raise BadFrame(f"the server sent a frame with {error.error_count()} wrong members") from None
    except ValueError as error:
        raise BadFrame(f"the server sent what is no frame: {error}") from None
    if isinstance(frame, AckResultFrame):
        return AckAnswer(frame.request_id, frame.delivery_id, frame.acked_at, frame.duplicate, frame.code)
    if not isinstance(frame, Delivery):
        return frame
    return ReceivedEvent(
        **frame.model_dump(exclude={"type", "pull_request_id", "snapshot"}), snapshot_text=members["snapshot"]
    )


def _plain(value: object) -> object:
    """JSON Schema calls 1.0 an integer, and so do the models if it is a float."""
    return float(value) if isinstance(value, Decimal) else value


def _text(**members: object) -> str:
    return json.dumps(members, separators=(",", ":"))
