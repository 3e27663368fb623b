"""Reading client frames: a short way for well-formed `ack` and `pull` frames, the models of the wire for the rest.

The short way accepts only what `CLIENT_FRAME` accepts, with the same values, and hands everything it is not sure of
to the long way; a property test compares both with the published schema. Before a frame is held against the schema
it must be one JSON object with unique members, valid Unicode and no number that JSON does not know.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, Never, cast

import orjson
from pydantic import ValidationError

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.limits import PULL_MAX, PULL_WAIT_MS_MAX, SEQUENCE_MAX
from orbit.wire.frames import CLIENT_FRAME, Ack, Hello, Ping, Pull

_is_id: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII).fullmatch
_is_proof: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII).fullmatch

_ACK_QUOTES: Final = 18
"""Five names and four texts. No text of a valid `ack` holds a quotation mark, so one more is a member named twice."""
_PULL_QUOTES: Final = 12
"""As for `ack`: four names and two texts; three names without `wait_ms`."""
_SHORT_PULL_QUOTES: Final = 10

AckWords = tuple[str, str, int, str]
"""An `ack` as the hot path carries it: request_id, delivery_id, lease_epoch, lease_secret."""

ClientMessage = AckWords | Hello | Pull | Ping


class FrameRefused(Exception):
    """A frame breaks the protocol. `request_id` is the frame's, where it can be made out."""

    def __init__(self, detail: str, request_id: str | None = None) -> None:
        self.request_id = request_id
        self.error = OrbitError(ErrorCode.INVALID_MESSAGE, detail)
        super().__init__(detail)


def read_frame(text: str) -> ClientMessage:
    """One client frame.

    Raises:
        FrameRefused: the frame is not what the schema allows.
    """
    try:
        members = orjson.loads(text)
    except orjson.JSONDecodeError:
        members = None
    if isinstance(members, dict):
        match cast("dict[str, Any]", members):
            case {
                "type": "ack",
                "request_id": str(request_id),
                "delivery_id": str(delivery_id),
                "lease_epoch": int(epoch),
                "lease_secret": str(proof),
            } as ack if (
                len(ack) == 5  # noqa: PLR2004 - as many as stand above
                and epoch is not True
                and 1 <= epoch <= SEQUENCE_MAX
                and _is_id(request_id)
                and _is_id(delivery_id)
                and _is_proof(proof)
                and text.count('"') == _ACK_QUOTES
            ):
                return request_id, delivery_id, epoch, proof
            case {"type": "pull", "request_id": str(request_id), "max": int(most), **rest} if (
                most is not True
                and 1 <= most <= PULL_MAX
                and _is_id(request_id)
                and (wait_ms := _wait_ms(rest, text.count('"'))) is not None
            ):
                return Pull.model_construct(type="pull", request_id=request_id, max=most, wait_ms=wait_ms)
            case _:
                pass
    return _read_slowly(text)


def _wait_ms(rest: dict[str, Any], quotes: int) -> int | None:
    match rest:
        case {"wait_ms": int(wait_ms)} if len(rest) == 1 and quotes == _PULL_QUOTES and not isinstance(wait_ms, bool):
            return wait_ms if 0 <= wait_ms <= PULL_WAIT_MS_MAX else None
        case _:
            return 0 if not rest and quotes == _SHORT_PULL_QUOTES else None


def _read_slowly(text: str) -> ClientMessage:
    try:
        members = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except FrameRefused:
        raise
    except (ValueError, RecursionError):
        raise FrameRefused("the frame is not one JSON text") from None
    if not isinstance(members, dict):
        raise FrameRefused("the frame is not a JSON object")
    document = cast("dict[str, Any]", members)
    try:
        frame = CLIENT_FRAME.validate_python(document)
    except ValidationError as error:
        raise FrameRefused(_first_reason(error), _request_id(document)) from None
    if isinstance(frame, Ack):
        return frame.request_id, frame.delivery_id, frame.lease_epoch, frame.lease_secret
    return frame


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise FrameRefused("a member is named twice", _request_id(members))
    return members


def _no_number(_text: str) -> Never:
    raise FrameRefused("NaN and Infinity are no JSON numbers")


def _request_id(members: dict[str, Any]) -> str | None:
    value = members.get("request_id")
    return value if isinstance(value, str) and _is_id(value) else None


def _first_reason(error: ValidationError) -> str:
    """What is wrong, by place and rule; never by value, which may be a secret."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(step) for step in first["loc"])
    # Unknown names are the client's own text; `type` says which rule broke, the first part of `loc` which frame.
    if first["type"] == "extra_forbidden":
        return "the frame has an unknown member"
    return f"{place}: {first['type'].replace('_', ' ')}" if place else first["type"].replace("_", " ")
