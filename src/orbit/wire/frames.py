"""The frames of `orbit.events.v1` (section 25), one model for each message.

Client frames refuse what the schema does not name; server frames ignore it, as clients must (WSS-04). The published
schema is generated from these models (`schema.py`), so a rule stands in one place. The server reads `pull` and `ack`
by a faster path that accepts nothing else than these models do (`orbit.server.ws.reading`).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, TypeAdapter, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from orbit.model.limits import (
    ATTEMPT_BUDGET_MAX,
    CAPACITY_MAX,
    LEASE_SECONDS,
    MAX_PENDING_MAX,
    PULL_MAX,
    PULL_WAIT_MS_MAX,
    SEQUENCE_MAX,
)

PROTOCOL: Final = "orbit.events.v1"
ID_PATTERN: Final = r"^[A-Za-z0-9._-]+$"
ID_LENGTH_MAX: Final = 64
PROOF_PATTERN: Final = r"^[A-Za-z0-9_-]{43}$"
CLIENT_LENGTH_MAX: Final = 128

TIME_SCHEMA: Final = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"}
"""As published: in ECMA 262 `\\d` means ASCII digits, in the models' pattern language any digit."""


def _whole(value: object) -> object:
    """JSON Schema calls 1.0 an integer; nothing else is converted."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE: Final = BeforeValidator(_whole)
"""Stands last, so that the limits before it reach the schema."""

Id = Annotated[str, StringConstraints(min_length=1, max_length=ID_LENGTH_MAX, pattern=ID_PATTERN)]
Secret = Annotated[str, StringConstraints(pattern=PROOF_PATTERN)]
Time = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"),
    WithJsonSchema(TIME_SCHEMA),
]
Positive = Annotated[int, Field(ge=1, le=SEQUENCE_MAX), WHOLE]
Capacity = Annotated[int, Field(ge=1, le=CAPACITY_MAX), WHOLE]
EventType = Literal["task.succeeded", "task.failed", "task.cancelled", "task.needs_review"]


def _distinct(types: list[EventType]) -> list[EventType]:
    if len(set(types)) < len(types):
        raise ValueError("types are named once each")
    return types


class ClientFrame(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class ServerFrame(BaseModel):
    """What a server sends; later versions may add members."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Hello(ClientFrame):
    """The first frame: which subscription, and how many deliveries may be leased at once (WSS-06)."""

    type: Literal["hello"]
    request_id: Id
    subscription_id: Id
    capacity: Capacity
    client: Annotated[str, Field(max_length=CLIENT_LENGTH_MAX)] = ""


class Pull(ClientFrame):
    """Credit for `max` deliveries, waiting up to `wait_ms` milliseconds for the first (WSS-07)."""

    type: Literal["pull"]
    request_id: Id
    max: Annotated[int, Field(ge=1, le=PULL_MAX), WHOLE]
    wait_ms: Annotated[int, Field(ge=0, le=PULL_WAIT_MS_MAX), WHOLE] = 0


class Ack(ClientFrame):
    """The proof that came with a delivery, given back (WSS-10)."""

    type: Literal["ack"]
    request_id: Id
    delivery_id: Id
    lease_epoch: Positive
    lease_secret: Annotated[Secret, Field(repr=False)]


class Ping(ClientFrame):
    """Asks for a `pong` (WSS-12)."""

    type: Literal["ping"]
    request_id: Id


class HelloOk(ServerFrame):
    """The connection serves the subscription now."""

    type: Literal["hello_ok"]
    request_id: Id
    protocol: Literal["orbit.events.v1"]
    connection_id: Id
    subscription_id: Id
    subscription_status: Literal["ACTIVE", "PAUSED"]
    subscription_revision: Positive
    queue_id: Id
    types: Annotated[list[EventType], Field(min_length=1, max_length=4, json_schema_extra={"uniqueItems": True})]
    capacity: Capacity
    lease_seconds: Literal[LEASE_SECONDS]  # pyright: ignore[reportInvalidTypeForm]
    server_time: Time


class Snapshot(BaseModel):
    """The immutable result (SRC-12, SRC-13). Whoever needs exact numbers takes its text, not this model."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    schema_version: Literal[1]
    task_id: Id
    queue_id: Id
    state: Literal["succeeded", "failed", "cancelled", "needs_review"]
    revision: Positive
    effect_uncertain: bool
    current_attempt_id: Id | None
    result: Any


class Delivery(ServerFrame):
    """One leased delivery; `snapshot` is the stored text, unchanged and last (WSS-09)."""

    type: Literal["delivery"]
    pull_request_id: Id
    subscription_id: Id
    delivery_id: Id
    event_id: Id
    event_type: EventType
    sequence: Positive
    lease_epoch: Positive
    lease_secret: Annotated[Secret, Field(repr=False)]
    lease_expires_at: Time
    attempts: Positive
    attempt_budget: Annotated[int, Field(ge=1, le=ATTEMPT_BUDGET_MAX), WHOLE]
    snapshot: Annotated[Snapshot, Field(repr=False)]


class PullDone(ServerFrame):
    """The end of a pull and why it ended (WSS-07)."""

    type: Literal["pull_done"]
    request_id: Id
    delivered: Annotated[int, Field(ge=0, le=PULL_MAX), WHOLE]
    reason: Literal["DELIVERED", "PAUSED", "CAPACITY_FULL", "WINDOW_FULL", "EMPTY"]
    pending_count: Annotated[int, Field(ge=0, le=MAX_PENDING_MAX), WHOLE]
    max_pending: Annotated[int, Field(ge=1, le=MAX_PENDING_MAX), WHOLE]


class AckResult(ServerFrame):
    """The answer to one `ack`, in the order of the `ack` frames (WSS-10)."""

    type: Literal["ack_result"]
    request_id: Id
    delivery_id: Id
    outcome: Literal["ACKED", "REJECTED"]
    acked_at: Time | None
    duplicate: bool
    code: Annotated[
        Literal["DELIVERY_LEASE_LOST", "DELIVERY_NOT_FOUND"] | None,
        WithJsonSchema({"enum": [None, "DELIVERY_LEASE_LOST", "DELIVERY_NOT_FOUND"]}),
    ]


class ErrorFrame(ServerFrame):
    """Something was refused; after a fatal error the server closes (WSS-11)."""

    type: Literal["error"]
    request_id: Id | None
    code: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
    message: str
    fatal: bool
    retained_from_sequence: Positive | SkipJsonSchema[None] = None
    cursor_sequence: Annotated[int, Field(ge=0), WHOLE] | SkipJsonSchema[None] = None


class Pong(ServerFrame):
    """The answer to a `ping`."""

    type: Literal["pong"]
    request_id: Id
    server_time: Time


CLIENT_FRAMES: Final[tuple[type[ClientFrame], ...]] = (Hello, Pull, Ack, Ping)
SERVER_FRAMES: Final[tuple[type[ServerFrame], ...]] = (HelloOk, Delivery, PullDone, AckResult, ErrorFrame, Pong)

AnyClientFrame = Annotated[Hello | Pull | Ack | Ping, Field(discriminator="type")]
AnyServerFrame = Annotated[HelloOk | Delivery | PullDone | AckResult | ErrorFrame | Pong, Field(discriminator="type")]
CLIENT_FRAME: Final[TypeAdapter[Hello | Pull | Ack | Ping]] = TypeAdapter(AnyClientFrame)
"""Reads any client frame."""
SERVER_FRAME: Final[TypeAdapter[HelloOk | Delivery | PullDone | AckResult | ErrorFrame | Pong]] = TypeAdapter(
    AnyServerFrame
)
"""Reads any server frame."""
