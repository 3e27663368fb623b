"""What the SDK raises (SDK-05). No text of an error holds a token, a lease secret, an input or a result."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from orbit.model.codes import CODES, ErrorCode

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


class OrbitSdkError(Exception):
    """Everything that the SDK raises on purpose, except for wrong arguments (ValueError)."""


class Unreachable(OrbitSdkError):
    """No answer came: the server cannot be reached, or the time was up; what it did is not known."""


class OrbitApiError(OrbitSdkError):
    """The server refused; programs decide on `code`.

    Attributes:
        status: HTTP status; for an `error` frame the status that HTTP has for the same code, or 409.
        code: as in the error table, or `HTTP_<status>` where somebody else than Orbit answered.
        detail: one sentence for a person.
        request_id: what the server's log calls the request; None where the answer had none.
        extensions: further members of the problem, for instance `current_revision`.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        request_id: str | None = None,
        extensions: Mapping[str, object] = _NOTHING,
    ) -> None:
        super().__init__(status, code, detail, request_id, extensions)
        self.status = status
        self.code = code
        self.detail = detail
        self.request_id = request_id
        self.extensions = extensions

    def __str__(self) -> str:
        asked = "" if self.request_id is None else f" (request {self.request_id})"
        return f"{self.status} {self.code}: {self.detail}{asked}"


class Unauthenticated(OrbitApiError):
    """401: the token is missing, unknown, expired or revoked."""


class Forbidden(OrbitApiError):
    """403: the credential may not do this, or its owner is disabled."""


class NotFound(OrbitApiError):
    """404: there is no such thing for this credential."""


class Conflict(OrbitApiError):
    """409: the state, the revision or an earlier request stands against it."""


class ValidationFailed(OrbitApiError):
    """422 or 400: the request is not what the interface takes."""


class HistoryExpired(OrbitApiError):
    """410: the position lies before what is retained (`EVENT_HISTORY_EXPIRED`); nothing is skipped silently."""


class DeliveryLeaseLost(OrbitSdkError):
    """The proof was replaced by a newer delivery, or is wrong: drop it and await the redelivery (SDK-11).

    Attributes:
        delivery_id: the delivery that was to be acknowledged.
    """

    def __init__(self, delivery_id: str) -> None:
        super().__init__(delivery_id)
        self.delivery_id = delivery_id

    def __str__(self) -> str:
        return f"the proof of delivery {self.delivery_id} is not the current one"


class ConnectionClosed(OrbitSdkError):
    """The event connection has ended.

    Attributes:
        code: the WebSocket close code; 1006 where the connection was lost without one.
        problem: code of the fatal `error` frame that came before, or None.
    """

    def __init__(self, code: int, problem: str | None = None) -> None:
        super().__init__(code, problem)
        self.code = code
        self.problem = problem

    def __str__(self) -> str:
        because = "" if self.problem is None else f" after {self.problem}"
        return f"the event connection was closed with {self.code}{because}"


_BY_STATUS: Final[Mapping[int, type[OrbitApiError]]] = MappingProxyType(
    {
        HTTPStatus.BAD_REQUEST: ValidationFailed,
        HTTPStatus.UNAUTHORIZED: Unauthenticated,
        HTTPStatus.FORBIDDEN: Forbidden,
        HTTPStatus.NOT_FOUND: NotFound,
        HTTPStatus.CONFLICT: Conflict,
        HTTPStatus.GONE: HistoryExpired,
        HTTPStatus.UNPROCESSABLE_ENTITY: ValidationFailed,
    }
)


def api_error(
    status: int, code: str, detail: str, request_id: str | None = None, extensions: Mapping[str, object] = _NOTHING
) -> OrbitApiError:
    """The error for an answer, of the class that its status has."""
    return _BY_STATUS.get(status, OrbitApiError)(status, code, detail, request_id, extensions)


def status_of(code: str) -> int:
    """The HTTP status of a code that came over the event connection; 409 where it has none."""
    known = CODES[ErrorCode(code)].status if code in CODES else None
    return HTTPStatus.CONFLICT if known is None else known
