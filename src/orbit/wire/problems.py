"""Errors over HTTP as problem details (RFC 9457, API-05): what a program may decide on is `code`, nothing else."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from orbit.model.codes import CODES, ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.limits import SEQUENCE_MAX

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:orbit:problem:"
ERRORS_MAX: Final = 20
"""How many wrong members one problem lists."""

Sequence = Annotated[int, Field(ge=0, le=SEQUENCE_MAX)]


class MemberError(BaseModel):
    """One member that is wrong."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pointer: str = Field(description="JSON pointer into the body, or the name of a header or query parameter")
    message: str


class Problem(BaseModel):
    """Every error has this form."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: str = Field(pattern=r"^urn:orbit:problem:[A-Z_]+$")
    title: str
    status: Annotated[int, Field(ge=400, le=599)]
    detail: str
    instance: str = Field(description="path of the request")
    code: str = Field(
        description="what a program decides on", json_schema_extra={"enum": [str(code) for code in CODES]}
    )
    request_id: str
    errors: list[MemberError] | None = Field(default=None, description="with VALIDATION_FAILED")
    reasons: list[str] | None = Field(default=None, description="with SERVICE_NOT_READY of `/readyz`")
    current_revision: Sequence | None = Field(default=None, description="with REVISION_CONFLICT")
    cursor_sequence: Sequence | None = Field(default=None, description="with EVENT_HISTORY_EXPIRED")
    retained_from_sequence: Sequence | None = Field(default=None, description="with EVENT_HISTORY_EXPIRED")
    last_sequence: Sequence | None = Field(default=None, description="with SEQUENCE_IN_FUTURE")


Extension = Literal[
    "errors", "reasons", "current_revision", "cursor_sequence", "retained_from_sequence", "last_sequence"
]
_EXTENSIONS: Final = frozenset(get_args(Extension))


def problem_of(error: OrbitError, *, instance: str, request_id: str) -> dict[str, Any]:
    """The members of the problem that stands for an error, in the order of the specification.

    An extension that the model does not name stays inside: SQL may know more than a caller may see.
    """
    code = error.code if error.facts.status is not None else ErrorCode.INTERNAL
    facts = CODES[code]
    members: dict[str, Any] = {
        "type": f"{TYPE_PREFIX}{code}",
        "title": facts.title,
        "status": facts.status,
        "detail": error.detail if code is error.code else facts.title,
        "instance": instance,
        "code": str(code),
        "request_id": request_id,
    }
    members |= {name: value for name, value in error.extensions.items() if name in _EXTENSIONS}
    return members
