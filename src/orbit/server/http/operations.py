"""Every operation of the HTTP interface, once: routes, checks and the published document are made from this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from orbit.model.codes import CODES, ErrorCode
from orbit.model.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from orbit.model.states import Action, DeliveryState, SubscriptionStatus
from orbit.server.http.query import CURSOR_LENGTH_MAX
from orbit.wire import answers, bodies


@dataclass(frozen=True, slots=True)
class Parameter:
    """One query parameter: its JSON Schema, and whether it may be given several times."""

    name: str
    summary: str
    schema: dict[str, object]
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes:
        action: what the credential must be granted; None where nobody is asked for a token.
        keyed: whether the request carries an idempotency key.
        codes: the problems of its own, beside those that every operation of its kind has.
        located: the member of the answer that `Location` is made from.
    """

    name: str
    method: str
    path: str
    summary: str
    action: Action | None
    answer: type[BaseModel] | None
    status: int = 200
    body: type[bodies.RequestBody] | None = None
    keyed: bool = False
    query: tuple[Parameter, ...] = ()
    codes: tuple[ErrorCode, ...] = ()
    located: str | None = None

    @property
    def accepted(self) -> frozenset[str]:
        """The query parameters that it takes."""
        return frozenset(parameter.name for parameter in self.query)

    @property
    def repeatable(self) -> frozenset[str]:
        """The query parameters that may be given several times."""
        return frozenset(parameter.name for parameter in self.query if parameter.repeatable)

    @property
    def problems(self) -> tuple[ErrorCode, ...]:
        """Every code that it may answer, in the order of their status."""
        found = {*self.codes, ErrorCode.INTERNAL}
        if self.path.startswith("/v1/"):
            found |= _OF_EVERY_REQUEST
        if self.action is not None:
            found |= _OF_EVERY_CALLER
        if self.body is not None:
            found |= _OF_EVERY_BODY
            if bodies.RAW_MEMBERS & self.body.model_fields.keys():
                found.add(ErrorCode.RESULT_TOO_LARGE)
        if self.keyed:
            found |= {ErrorCode.IDEMPOTENCY_KEY_REQUIRED, ErrorCode.IDEMPOTENCY_CONFLICT}
        if "cursor" in self.accepted:
            found.add(ErrorCode.INVALID_CURSOR)
        return tuple(sorted(found, key=lambda code: (CODES[code].status or 0, code)))


_OF_EVERY_REQUEST: Final = {
    ErrorCode.VALIDATION_FAILED,
    ErrorCode.SERVICE_BUSY,
    ErrorCode.SERVICE_NOT_READY,
    ErrorCode.SERVER_SHUTTING_DOWN,
}
_OF_EVERY_CALLER: Final = {
    ErrorCode.UNAUTHENTICATED,
    ErrorCode.NAMESPACE_DISABLED,
    ErrorCode.APPLICATION_DISABLED,
    ErrorCode.ACTION_NOT_ALLOWED,
}
_OF_EVERY_BODY: Final = {
    ErrorCode.MALFORMED_REQUEST,
    ErrorCode.REQUEST_TOO_LARGE,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE,
}
_OF_A_QUEUE: Final = (ErrorCode.QUEUE_NOT_ALLOWED, ErrorCode.QUEUE_NOT_FOUND)
_OF_A_SUBSCRIPTION: Final = (
    ErrorCode.SUBSCRIPTION_NOT_FOUND,
    ErrorCode.QUEUE_NOT_ALLOWED,
    ErrorCode.SUBSCRIPTION_DISABLED,
)
_OF_AN_ATTEMPT: Final = (ErrorCode.ATTEMPT_NOT_FOUND, ErrorCode.ATTEMPT_LEASE_LOST)
_OF_A_CHANGE: Final = (*_OF_A_SUBSCRIPTION, ErrorCode.SUBSCRIPTION_STATE_CONFLICT, ErrorCode.REVISION_CONFLICT)
_OF_A_TASK_CHANGE: Final = (ErrorCode.TASK_NOT_FOUND, ErrorCode.TASK_STATE_CONFLICT, ErrorCode.REVISION_CONFLICT)

_LIMIT: Final = Parameter(
    "limit",
    "items of one page",
    {"type": "integer", "minimum": 1, "maximum": PAGE_SIZE_MAX, "default": PAGE_SIZE_DEFAULT},
)
_CURSOR: Final = Parameter(
    "cursor",
    "`next_cursor` of the page before; opaque, and good for this list, these filters and this credential only",
    {"type": "string", "maxLength": CURSOR_LENGTH_MAX},
)
_PAGE: Final = (_LIMIT, _CURSOR)
_STATES: Final = Parameter(
    "state",
    "only deliveries in this state; may be repeated",
    {"type": "array", "items": {"enum": [str(state) for state in DeliveryState]}},
    repeatable=True,
)
_STATUS: Final = Parameter(
    "status", "only subscriptions with this status", {"enum": [str(status) for status in SubscriptionStatus]}
)
_QUEUE: Final = Parameter(
    "queue",
    "only subscriptions to the queue of this name",
    {"type": "string", "minLength": 1, "maxLength": bodies.NAME_LENGTH_MAX, "pattern": r"^[^\u0000-\u001f\u007f]*$"},
)

SUBSCRIPTIONS: Final = "/v1/event-subscriptions"
SUBSCRIPTION: Final = SUBSCRIPTIONS + "/{subscription_id}"
DELIVERY: Final = SUBSCRIPTION + "/deliveries/{delivery_id}"
TASK: Final = "/v1/tasks/{task_id}"
ATTEMPT: Final = "/v1/worker/attempts/{attempt_id}"

OPERATIONS: Final = (
    Operation(
        "confirmAttempt",
        "POST",
        ATTEMPT + "/result",
        "Confirm the result of an attempt; a repetition with the same content returns the first receipt",
        Action.TASKS_WORK,
        answers.Receipt,
        body=bodies.AttemptConfirm,
        codes=(*_OF_AN_ATTEMPT, ErrorCode.RESULT_CONFLICT),
    ),
    Operation(
        "claimTasks",
        "POST",
        "/v1/worker/claims",
        "Take ready tasks of a queue",
        Action.TASKS_WORK,
        answers.TaskClaims,
        body=bodies.WorkerClaim,
        codes=(*_OF_A_QUEUE, ErrorCode.QUEUE_DISABLED),
    ),
    Operation(
        "submitTask",
        "POST",
        "/v1/tasks",
        "Submit a task",
        Action.TASKS_CREATE,
        answers.Task,
        status=201,
        body=bodies.TaskSubmit,
        keyed=True,
        codes=(*_OF_A_QUEUE, ErrorCode.QUEUE_DISABLED, ErrorCode.APPLICATION_QUOTA_EXCEEDED),
        located="task_id",
    ),
    Operation(
        "heartbeatAttempt",
        "POST",
        ATTEMPT + "/heartbeat",
        "Keep the lease of an attempt",
        Action.TASKS_WORK,
        answers.AttemptLease,
        body=bodies.AttemptHeartbeat,
        codes=_OF_AN_ATTEMPT,
    ),
    Operation(
        "getTask",
        "GET",
        TASK,
        "Read a task and its result",
        Action.TASKS_READ,
        answers.Task,
        codes=(ErrorCode.TASK_NOT_FOUND,),
    ),
    Operation(
        "cancelTask",
        "POST",
        TASK + "/cancel",
        "Cancel a task; one that runs and must not be repeated becomes `needs_review`",
        Action.TASKS_CANCEL,
        answers.Task,
        body=bodies.TaskCancel,
        keyed=True,
        codes=_OF_A_TASK_CHANGE,
    ),
    Operation(
        "resolveTask",
        "POST",
        TASK + "/resolve",
        "Give the authoritative result of a task in `needs_review`",
        Action.TASKS_RESOLVE,
        answers.Task,
        body=bodies.TaskResolve,
        keyed=True,
        codes=_OF_A_TASK_CHANGE,
    ),
    Operation(
        "createSubscription",
        "POST",
        SUBSCRIPTIONS,
        "Create a subscription; the calling credential owns it",
        Action.EVENTS_MANAGE,
        answers.Subscription,
        status=201,
        body=bodies.SubscriptionCreate,
        keyed=True,
        codes=(
            *_OF_A_QUEUE,
            ErrorCode.SUBSCRIPTION_NAME_CONFLICT,
            ErrorCode.SUBSCRIPTION_LIMIT_REACHED,
            ErrorCode.SEQUENCE_IN_FUTURE,
            ErrorCode.EVENT_HISTORY_EXPIRED,
        ),
        located="subscription_id",
    ),
    Operation(
        "listSubscriptions",
        "GET",
        SUBSCRIPTIONS,
        "List the credential's own subscriptions, oldest first",
        Action.EVENTS_READ,
        answers.SubscriptionPage,
        query=(*_PAGE, _STATUS, _QUEUE),
    ),
    Operation(
        "getSubscription",
        "GET",
        SUBSCRIPTION,
        "Read a subscription",
        Action.EVENTS_READ,
        answers.Subscription,
        codes=_OF_A_SUBSCRIPTION,
    ),
    Operation(
        "pauseSubscription",
        "POST",
        SUBSCRIPTION + "/pause",
        "Stop new deliveries; what was sent may still be acknowledged",
        Action.EVENTS_MANAGE,
        answers.Subscription,
        body=bodies.SubscriptionChange,
        keyed=True,
        codes=_OF_A_CHANGE,
    ),
    Operation(
        "resumeSubscription",
        "POST",
        SUBSCRIPTION + "/resume",
        "Go on after a pause with the same deliveries",
        Action.EVENTS_MANAGE,
        answers.Subscription,
        body=bodies.SubscriptionChange,
        keyed=True,
        codes=_OF_A_CHANGE,
    ),
    Operation(
        "listDeliveries",
        "GET",
        SUBSCRIPTION + "/deliveries",
        "List the deliveries of a subscription in the order of sequence",
        Action.EVENTS_READ,
        answers.DeliveryPage,
        query=(*_PAGE, _STATES),
        codes=_OF_A_SUBSCRIPTION,
    ),
    Operation(
        "listExhausted",
        "GET",
        SUBSCRIPTION + "/exhausted",
        "List the deliveries whose budget is used up: those in `EXPIRED`",
        Action.EVENTS_READ,
        answers.DeliveryPage,
        query=_PAGE,
        codes=_OF_A_SUBSCRIPTION,
    ),
    Operation(
        "getDelivery",
        "GET",
        DELIVERY,
        "Read a delivery",
        Action.EVENTS_READ,
        answers.Delivery,
        codes=(*_OF_A_SUBSCRIPTION, ErrorCode.DELIVERY_NOT_FOUND),
    ),
    Operation(
        "retryDelivery",
        "POST",
        DELIVERY + "/retry",
        "Add to the budget of a delivery in `EXPIRED`; attempts, epoch and ids stay",
        Action.EVENTS_MANAGE,
        answers.Delivery,
        body=bodies.DeliveryRetry,
        keyed=True,
        codes=(
            *_OF_A_SUBSCRIPTION,
            ErrorCode.DELIVERY_NOT_FOUND,
            ErrorCode.DELIVERY_NOT_EXPIRED,
            ErrorCode.REVISION_CONFLICT,
            ErrorCode.ATTEMPT_BUDGET_EXCEEDED,
        ),
    ),
    Operation("getHealth", "GET", "/healthz", "200 while the process lives", None, answers.Health),
    Operation(
        "getReadiness",
        "GET",
        "/readyz",
        "200 while requests are served; else the list of reasons",
        None,
        answers.Health,
        codes=(ErrorCode.SERVICE_NOT_READY,),
    ),
    Operation("getMetrics", "GET", "/metrics", "What the process counted, in the Prometheus text format", None, None),
)
"""In the order in which they are tried: the busiest first."""
