"""Errors of the endpoint itself, as problem details (RFC 9457): a stable type, a sentence, never a stack trace."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

MEDIA_TYPE: Final = "application/problem+json"

TITLES: Final = {
    "not-found": "There is nothing here",
    "method-not-allowed": "This method is not allowed here",
    "unsupported-media-type": "The body must be application/json",
    "content-too-large": "The body is larger than this receiver takes",
    "request-timeout": "The body did not arrive in time",
    "invalid-request": "The request breaks the protocol",
    "unauthenticated": "The workload token is missing or not valid",
    "forbidden": "The workload token is for another call",
    "unknown-consumer": "This receiver has no such consumer",
    "overloaded": "The receiver is busy; come back later",
    "too-slow": "The consumer did not finish in time",
    "not-ready": "A database cannot be reached",
    "internal": "The receiver failed; the reference names the log record",
    "http": "The request was refused",
}


class Problem(BaseModel):
    """Problem details as every error of this endpoint returns them."""

    model_config = ConfigDict(frozen=True)

    type: str = Field(description="`urn:seapost:problem:` and a stable name")
    title: str
    status: int
    detail: str | None = None
    reference: str | None = Field(default=None, description="opaque id of a log record")


def problem(
    status: int,
    name: str,
    detail: str | None = None,
    *,
    reference: str | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """A problem response; `name` is one of `TITLES`."""
    document = Problem(
        type=f"urn:seapost:problem:{name}", title=TITLES[name], status=status, detail=detail, reference=reference
    )
    return JSONResponse(
        document.model_dump(exclude_none=True), status_code=status, media_type=MEDIA_TYPE, headers=headers
    )


def problem_of_status(status: int, headers: dict[str, str] | None = None) -> JSONResponse:
    """The problem for an error that the framework found, by its status alone."""
    match status:
        case HTTPStatus.NOT_FOUND:
            name = "not-found"
        case HTTPStatus.METHOD_NOT_ALLOWED:
            name = "method-not-allowed"
        case _:
            name = "http"
    return problem(status, name, headers=headers)


class Refusal(Exception):
    """A request that ends in a problem; raised anywhere below an endpoint."""

    def __init__(
        self, status: int, name: str, detail: str | None = None, *, headers: dict[str, str] | None = None
    ) -> None:
        self.status = status
        self.name = name
        self.detail = detail
        self.headers = headers
        super().__init__(name)
