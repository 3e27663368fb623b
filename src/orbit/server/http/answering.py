"""Turning what a handler returns or raises into a response; nothing but our own bodies leaves (API-05, API-12)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from fastapi import Request, Response
from starlette.types import Scope
from uuid_utils import uuid7

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.store.answer import Answer
from orbit.wire.problems import MEDIA_TYPE, problem_of

REQUEST_ID: Final = "Orbit-Request-Id"
REPLAYED: Final = "Idempotency-Replayed"
ID_LENGTH_MAX: Final = 64
UNMATCHED: Final = "(unmatched)"
_SCOPE_ID: Final = "orbit.request_id"
_SCOPE_ROUTE: Final = "orbit.route"
_RETRY_AFTER_SECONDS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.SERVICE_BUSY: 1,
    ErrorCode.SERVICE_NOT_READY: 2,
    ErrorCode.SERVER_SHUTTING_DOWN: 2,
}
_UNREAD_BODY: Final = frozenset(
    {ErrorCode.REQUEST_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE, ErrorCode.SERVER_SHUTTING_DOWN}
)


def name_request(scope: Scope) -> str:
    """Give a request its id (API-06)."""
    request_id = f"req_{uuid7().hex}"
    scope[_SCOPE_ID] = request_id
    return request_id


def remember_route(scope: Scope, path: str) -> None:
    """Note which route serves a request, for the log."""
    scope[_SCOPE_ROUTE] = path


def route_of(scope: Scope) -> str:
    """The route that serves a request."""
    return scope.get(_SCOPE_ROUTE, UNMATCHED)


def ok(body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer whose body the database composed; it is passed through untouched."""
    return Response(body, status, headers, "application/json")


def answered(answer: Answer, collection: str | None = None, member: str = "") -> Response:
    """The response to a call that changed something, or that was changed by an earlier one.

    Args:
        answer: what the transaction returned.
        collection: the path under which what was made is found; it becomes `Location` (IDM-09).
        member: the member of the body that names it.
    """
    headers: dict[str, str] = {}
    if answer.replayed:
        headers[REPLAYED] = "true"
    if collection is not None:
        headers["Location"] = f"{collection}/{json.loads(answer.body)[member]}"
    return ok(answer.body, answer.status, headers)


def problem(scope: Scope, error: OrbitError, headers: Mapping[str, str] | None = None) -> Response:
    """The response for an error."""
    given = dict(headers or {})
    if error.code is ErrorCode.UNAUTHENTICATED:
        given["WWW-Authenticate"] = "Bearer"
    if error.code in _RETRY_AFTER_SECONDS:
        given["Retry-After"] = str(_RETRY_AFTER_SECONDS[error.code])
    if error.code in _UNREAD_BODY:
        given["Connection"] = "close"
    path = bytes(scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0].decode("ascii", "replace")
    members = problem_of(error, instance=path, request_id=scope[_SCOPE_ID])
    return Response(json.dumps(members), members["status"], given, MEDIA_TYPE)


def path_id(request: Request, name: str) -> str:
    """An id from the path; text that no id has becomes one that belongs to nothing, and so is not found."""
    text: str = request.path_params[name]
    plain = len(text) <= ID_LENGTH_MAX and text.isascii() and text.replace("_", "").isalnum()
    return text if plain else "-"
