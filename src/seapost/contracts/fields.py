"""The field types of contracts: each is one written rule, the same in Python, JSON Schema and TypeScript."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from seapost.contracts import identifiers
from seapost.contracts.examination import INTEGER_MAX
from seapost.model.errors import ContractError


def _identifier(value: str) -> str:
    problem = identifiers.identifier_problem(value)
    if problem is not None:
        raise PydanticCustomError("identifier", "{problem}", {"problem": problem})
    return value


def _timestamp(value: str) -> str:
    try:
        _ = identifiers.read_timestamp(value)
    except ContractError as error:
        raise PydanticCustomError("timestamp", "{problem}", {"problem": error.message}) from None
    return value


def _traceparent(value: str) -> str:
    if not identifiers.is_traceparent(value):
        raise PydanticCustomError("traceparent", "A traceparent has the form of W3C Trace Context")
    return value


Algorithm = Literal["jcs-sha256-v1"]
"""The only digest algorithm so far; another one is unknown and refused (SET-14)."""

Digest = Annotated[str, Field(pattern=identifiers.DIGEST_PATTERN)]
"""SHA-256 as 64 lower-case hexadecimal characters."""

EventId = Annotated[str, Field(pattern=identifiers.EVENT_ID_PATTERN)]
"""UUIDv7 in lower-case canonical spelling."""

EventType = Annotated[str, Field(pattern=identifiers.EVENT_TYPE_PATTERN, max_length=identifiers.EVENT_TYPE_LENGTH_MAX)]

Version = Annotated[str, Field(pattern=identifiers.VERSION_PATTERN, max_length=identifiers.VERSION_LENGTH_MAX)]
"""A version is a string: as JSON numbers, `2.0` and `2` would be one (AMB-14)."""

Name = Annotated[str, Field(pattern=identifiers.NAME_PATTERN, max_length=identifiers.NAME_LENGTH_MAX)]

AggregateKind = Annotated[
    str, Field(pattern=identifiers.NAME_PATTERN, max_length=identifiers.AGGREGATE_KIND_LENGTH_MAX)
]

TypeName = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=identifiers.NAME_LENGTH_MAX)]
"""The name of a contract, such as `ConsumerReceipt`."""

Label = Annotated[str, Field(min_length=1, max_length=identifiers.NAME_LENGTH_MAX), AfterValidator(_identifier)]
"""A version or release label that is compared only for equality, such as `bootstrap-1`."""

Identifier = Annotated[
    str, Field(min_length=1, max_length=identifiers.IDENTIFIER_LENGTH_MAX), AfterValidator(_identifier)
]
"""An identifier of somebody's data; see `identifiers`."""

Timestamp = Annotated[str, Field(pattern=identifiers.TIMESTAMP_PATTERN), AfterValidator(_timestamp)]
"""RFC 3339 in UTC with six decimals and `Z`."""

Traceparent = Annotated[str, Field(pattern=identifiers.TRACEPARENT_PATTERN), AfterValidator(_traceparent)]

Count = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
Revision = Annotated[int, Field(ge=1, le=INTEGER_MAX)]
