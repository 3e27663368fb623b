"""From an answer to its value or its error; the same for HTTP and for a refused handshake of the event connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from orbit.model.exact_json import raw_members, value_of
from orbit.sdk.errors import OrbitApiError, api_error
from orbit.sdk.values import Page

ModelT = TypeVar("ModelT", bound=BaseModel)

REQUEST_ID_HEADER: Final = "Orbit-Request-Id"
_MEMBERS_OF_A_PROBLEM: Final = frozenset({"type", "title", "status", "detail", "instance", "code", "request_id"})


def reading(model: type[ModelT]) -> Callable[[Any], ModelT]:
    """A reader of one body."""
    return model.model_validate


def reading_page(model: type[ModelT]) -> Callable[[Any], Page[ModelT]]:
    """A reader of a part of a list."""

    def read(body: Any) -> Page[ModelT]:  # noqa: ANN401
        return Page(tuple(map(model.model_validate, body["items"])), body["next_cursor"])

    return read


def reading_items(model: type[ModelT]) -> Callable[[Any], list[ModelT]]:
    """A reader of a list that has no further parts."""

    def read(body: Any) -> list[ModelT]:  # noqa: ANN401
        return [model.model_validate(item) for item in body["items"]]

    return read


ValueT = TypeVar("ValueT")


def value_in(status: int, headers: Mapping[str, str], body: bytes, read: Callable[[Any], ValueT]) -> ValueT:
    """What a successful answer says; any other raises its error."""
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise error_in(status, headers, body)
    try:
        return read(value_of(body.decode()))
    except (ValidationError, ValueError, KeyError, TypeError):
        # Their texts may quote the answer.
        raise OrbitApiError(
            status, f"HTTP_{status}", "the answer is not what this version reads", headers.get(REQUEST_ID_HEADER)
        ) from None


def error_in(status: int, headers: Mapping[str, str], body: bytes) -> OrbitApiError:
    """The error that an answer stands for; a body that is no problem is not quoted."""
    request_id = headers.get(REQUEST_ID_HEADER)
    try:
        members = {name: value_of(text) for name, text in raw_members(body.decode()).items()}
        code, detail = str(members["code"]), str(members.get("detail") or members["title"])
    except (ValueError, KeyError):
        return api_error(status, f"HTTP_{status}", "the answer is no problem of Orbit's", request_id)
    extensions = {name: value for name, value in members.items() if name not in _MEMBERS_OF_A_PROBLEM}
    return api_error(status, code, detail, members.get("request_id") or request_id, extensions)
