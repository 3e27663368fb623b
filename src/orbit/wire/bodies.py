"""The bodies of requests over HTTP (sections 14 and 15), one model for each; the published document is made from them.

They are read strictly: no member that is not named here, no value of another type, and `1.0` or `1e2` is no integer
(API-04). `null` counts as omitted wherever a member may be omitted, except for `result` and `input`, where it is a
value (SUB-12, TSK-18). `result` and `input` hold the exact text of their JSON value, never a decoded one (SRC-19).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

from orbit.model.limits import (
    ADDITIONAL_ATTEMPTS_MAX,
    BODY_BYTES_MAX,
    JSON_DEPTH_MAX,
    MAX_ATTEMPTS_DEFAULT,
    MAX_ATTEMPTS_MAX,
    MAX_PENDING_DEFAULT,
    MAX_PENDING_MAX,
    REASON_LENGTH_MAX,
    RESULT_BYTES_MAX,
    SEQUENCE_MAX,
    SUBSCRIPTION_NAME_PATTERN,
    TASK_ATTEMPTS_DEFAULT,
    TASK_ATTEMPTS_MAX,
    TASK_BODY_BYTES_MAX,
    WORKER_CLAIM_MAX,
)
from orbit.model.states import ResultType
from orbit.wire.frames import EventType, Secret

NAME_LENGTH_MAX: Final = 64
WORKER_ID_LENGTH_MAX: Final = 128
_ONE_LINE: Final = r"^[^\u0000-\u001f\u007f]*$"
_NO_NUL: Final = r"^[^\u0000]*$"

RAW_MEMBERS: Final = frozenset({"input", "result"})
"""Members that are kept as text; the only ones whose `null` is a value."""


def _distinct(types: list[EventType]) -> list[EventType]:
    if len(set(types)) < len(types):
        raise ValueError("types are named once each")
    return types


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("the character U+0000 cannot be stored")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_LENGTH_MAX, pattern=_ONE_LINE)]
WorkerId = Annotated[str, StringConstraints(min_length=1, max_length=WORKER_ID_LENGTH_MAX, pattern=_ONE_LINE)]
Revision = Annotated[int, Field(ge=1, le=SEQUENCE_MAX)]
Note = Annotated[str, StringConstraints(max_length=REASON_LENGTH_MAX, pattern=_NO_NUL)]
"""A reason that may be empty."""
Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=REASON_LENGTH_MAX),
    AfterValidator(_storable),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": REASON_LENGTH_MAX,
            "pattern": r"^[^\u0000]*[^\s\u0000][^\u0000]*$",
            "description": f"1 to {REASON_LENGTH_MAX} characters after trimming white space",
        }
    ),
]
Types = Annotated[
    list[EventType],
    Field(max_length=len(ResultType), json_schema_extra={"uniqueItems": True}),
    AfterValidator(_distinct),
]
ExactJson = Annotated[
    str,
    WithJsonSchema(
        {
            "description": f"Any JSON value, `null` included, of at most {RESULT_BYTES_MAX} bytes and {JSON_DEPTH_MAX} "
            "levels; its text is kept byte for byte."
        }
    ),
]


class RequestBody(BaseModel):
    """What every request body has.

    Attributes:
        bytes_max: how large the whole body may be.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    bytes_max: ClassVar[int] = BODY_BYTES_MAX

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """Show no value: bodies hold secrets, inputs and results (AUT-14, API-10)."""
        return []


class SubscriptionCreate(RequestBody):
    """Create a subscription to the results of one queue."""

    name: Annotated[str, StringConstraints(pattern=SUBSCRIPTION_NAME_PATTERN)]
    queue: Name
    types: Types | None = Field(default=None, description="omitted or empty: all four")
    from_sequence: Annotated[int, Field(ge=0, le=SEQUENCE_MAX)] | None = Field(
        default=None, description="results after this sequence; omitted: after the newest; 0: the whole journal"
    )
    max_pending: Annotated[int, Field(ge=0, le=MAX_PENDING_MAX)] | None = Field(
        default=None, description=f"deliveries made but not acknowledged; omitted or 0: {MAX_PENDING_DEFAULT}"
    )
    max_attempts: Annotated[int, Field(ge=0, le=MAX_ATTEMPTS_MAX)] | None = Field(
        default=None, description=f"sends of each delivery; omitted or 0: {MAX_ATTEMPTS_DEFAULT}"
    )


class SubscriptionChange(RequestBody):
    """Pause or resume a subscription."""

    expected_revision: Revision = Field(description="`revision` of the subscription, as last seen")
    reason: Note | None = None


class DeliveryRetry(RequestBody):
    """Add attempts to the budget of a delivery that is `EXPIRED`."""

    expected_revision: Revision = Field(description="`revision` of the delivery, as last seen")
    reason: Reason
    additional_attempts: Annotated[int, Field(ge=1, le=ADDITIONAL_ATTEMPTS_MAX)]


class TaskSubmit(RequestBody):
    """Submit a task to a queue."""

    bytes_max: ClassVar[int] = TASK_BODY_BYTES_MAX

    queue: Name
    input: ExactJson
    effect_policy: Literal["safe", "unsafe"] | None = Field(
        default=None, description="whether repeating the work does harm; omitted: unsafe"
    )
    max_attempts: Annotated[int, Field(ge=1, le=TASK_ATTEMPTS_MAX)] | None = Field(
        default=None, description=f"omitted: {TASK_ATTEMPTS_DEFAULT}"
    )


class TaskCancel(RequestBody):
    """Cancel a task that has not ended."""

    bytes_max: ClassVar[int] = TASK_BODY_BYTES_MAX

    expected_revision: Revision
    reason: Note | None = None


class TaskResolve(RequestBody):
    """Give the authoritative result of a task in `needs_review`."""

    bytes_max: ClassVar[int] = TASK_BODY_BYTES_MAX

    expected_revision: Revision
    outcome: Literal["succeeded", "failed", "cancelled"]
    reason: Reason
    result: ExactJson | None = Field(default=None, description="omitted: the earlier result stays; null: no result")


class WorkerClaim(RequestBody):
    """Take ready tasks of a queue."""

    queue: Name
    worker_id: WorkerId
    max: Annotated[int, Field(ge=1, le=WORKER_CLAIM_MAX)] | None = Field(default=None, description="omitted: 1")


class AttemptHeartbeat(RequestBody):
    """Keep an attempt's lease."""

    lease_secret: Secret


class AttemptConfirm(RequestBody):
    """Confirm the result of an attempt."""

    bytes_max: ClassVar[int] = TASK_BODY_BYTES_MAX

    lease_secret: Secret
    outcome: Literal["succeeded", "failed"]
    effect: Literal["none", "unknown"] | None = Field(default=None, description="omitted: none")
    retryable: bool | None = Field(default=None, description="omitted: false")
    result: ExactJson | None = Field(default=None, description="omitted: no result")
