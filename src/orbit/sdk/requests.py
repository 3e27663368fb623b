"""One HTTP call and how often it is tried, without a client: both clients drive the same generator (SDK-03, SDK-04).

A call is repeated after connection errors, timeouts and 503, with the same key and body, and not before what
`Retry-After` asks for. A call that may have been carried out although no answer came, and carries no key, is repeated
only if it was certainly not carried out.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar

import httpx

from orbit.model.exact_json import raw_members, text_of
from orbit.sdk.addresses import CLIENT_NAME, Access
from orbit.sdk.answers import value_in
from orbit.sdk.errors import Unreachable
from orbit.sdk.waiting import Backoff, retry_after

ValueT = TypeVar("ValueT")

RETRIES_MAX: Final = 5
RETRY_AFTER_SECONDS_MAX: Final = 300.0
"""A server that asks for more gets no repetition; the caller is told instead."""
KEY_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Call(Generic[ValueT]):
    """One request.

    Attributes:
        path: below the base URL.
        read: makes the value of the answer's body.
        body: JSON text, not shown: it may hold a secret.
        key: value of `Idempotency-Key`, or None.
        repeatable: repeating it does no harm even if the first try was carried out.
    """

    method: str
    path: str
    read: Callable[[Any], ValueT]
    query: tuple[tuple[str, str], ...] = ()
    body: str | None = field(default=None, repr=False)
    key: str | None = None
    repeatable: bool = True


def get(path: str, read: Callable[[Any], ValueT], **query: object) -> Call[ValueT]:
    """A call that reads; parameters that are None are left out, and a list is repeated."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        values = value if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownVariableType]
        pairs += [(name, str(one)) for one in values if one is not None]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return Call("GET", path, read, tuple(pairs))


def keyed(path: str, read: Callable[[Any], ValueT], members: Mapping[str, object], key: str | None) -> Call[ValueT]:
    """A call that changes something, under the caller's key or one of its own."""
    return Call("POST", path, read, body=body_of(members), key=secrets.token_hex(KEY_BYTES) if key is None else key)


def body_of(members: Mapping[str, object]) -> str:
    """A JSON object; members that are None are left out."""
    return text_of({name: value for name, value in members.items() if value is not None})


def with_member(call: Call[ValueT], name: str, text: str) -> Call[ValueT]:
    """The call with one more member, whose JSON text is sent as it stands. Raises ValueError for what is no value."""
    raw = raw_members(f'{{"{name}":{text}}}')
    if list(raw) != [name] or call.body is None:
        raise ValueError(f"{name} must be one JSON value")
    return replace(call, body=f'{call.body[:-1]},"{name}":{raw[name]}}}')


def exchange(
    call: Call[ValueT], retries_max: int, backoff: Backoff
) -> Generator[Call[ValueT] | float, httpx.Response | Exception | None, ValueT]:
    """Carry a call out: yields it to be sent, and seconds to be waited; gets the response or what httpx raised."""
    for tries_left in range(retries_max, -1, -1):
        outcome = yield call
        if isinstance(outcome, httpx.Response):
            asked = retry_after(outcome.headers)
            if (
                outcome.status_code != HTTPStatus.SERVICE_UNAVAILABLE
                or not tries_left
                or asked > RETRY_AFTER_SECONDS_MAX
            ):
                return value_in(outcome.status_code, outcome.headers, outcome.content, call.read)
            yield asked + backoff.after_failure()
        elif isinstance(outcome, httpx.TransportError):
            was_sent = not isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
            if not tries_left or (was_sent and not call.repeatable):
                raise Unreachable(f"no answer from {call.method} {call.path}: {type(outcome).__name__}") from outcome
            yield backoff.after_failure()
        else:
            raise TypeError("a response or an error of httpx is expected")
    raise AssertionError("the last try returns or raises")


def client_options(access: Access, timeout: float) -> dict[str, Any]:
    """What both HTTP clients are made with."""
    return {
        "base_url": access.http_url,
        "headers": access.headers() | {"User-Agent": CLIENT_NAME, "Accept": "application/json"},
        "timeout": timeout,
        "trust_env": not access.loopback,
    }


def request_options(call: Call[Any]) -> dict[str, Any]:
    """What both HTTP clients send."""
    headers = {} if call.body is None else {"Content-Type": "application/json"}
    if call.key is not None:
        headers["Idempotency-Key"] = call.key
    return {
        "method": call.method,
        "url": call.path,
        "params": call.query,
        "content": None if call.body is None else call.body.encode(),
        "headers": headers,
    }
