"""What every call begins with, in the order in which it is checked (SUB-25): query, body, token, key.

Whether the token is known and may do this is decided inside the transaction that does the work (AUT-11); here only its
form is looked at, so that a request without one costs no transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypedDict, TypeVar

from fastapi import Request

from orbit.access.token import TokenDigest
from orbit.server.http.body import read_body
from orbit.server.http.headers import bearer, idempotency_key
from orbit.server.http.query import read_query
from orbit.wire.bodies import RequestBody
from orbit.wire.strict_body import read_request

BodyT_co = TypeVar("BodyT_co", bound=RequestBody, covariant=True)


class Identity(TypedDict):
    """What makes a repetition recognisable (IDM-07, IDM-10)."""

    idempotency_key: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class Call(Generic[BodyT_co]):
    """A call without an idempotency key."""

    token: TokenDigest
    body: BodyT_co


@dataclass(frozen=True, slots=True)
class KeyedCall(Generic[BodyT_co]):
    """A call that may be repeated under its key."""

    token: TokenDigest
    body: BodyT_co
    identity: Identity


async def read_call(request: Request, model: type[BodyT_co]) -> Call[BodyT_co]:
    """Read a call with a body."""
    _ = read_query(request, ())
    given = read_request(model, await read_body(request, bytes_max=model.bytes_max))
    return Call(bearer(request), given.body)


async def read_keyed_call(request: Request, model: type[BodyT_co]) -> KeyedCall[BodyT_co]:
    """Read a call with a body and an idempotency key."""
    _ = read_query(request, ())
    given = read_request(model, await read_body(request, bytes_max=model.bytes_max))
    token = bearer(request)
    key = idempotency_key(request)
    return KeyedCall(token, given.body, {"idempotency_key": key, "request_sha256": given.fingerprint})


def read_caller(request: Request) -> TokenDigest:
    """Read a call without body and without query parameters."""
    token = bearer(request)
    _ = read_query(request, ())
    return token
