"""Reads over HTTP: one POST for a batch, on connections that stay open; only a complete 200 response is answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, Self, TypeVar

import httpx

from oceanway.contracts.base import Contract
from oceanway.contracts.reads import ReadOperation
from oceanway.reads.call import ITEMS_MAX, MEDIA_TYPE, PATH, RESPONSE_BYTES_MAX, encode_request
from oceanway.reads.client import answers_of, parts_of
from oceanway.reads.errors import OwnerUnreadable, ReadRefused
from seapost.model.errors import InvalidSetting
from seapost.transport.token import TokenSigner

A = TypeVar("A", bound=Contract)
R = TypeVar("R", bound=Contract)

REASON_CHARACTERS_MAX: Final = 300
PROBLEM_BYTES_MAX: Final = 65_536
_REFUSALS: Final = range(400, 500)
_PASSING: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What one call may cost.

    Attributes:
        items_max: items in one POST; more go out in several.
        seconds_max: for connecting, and for each wait on the other side.
        connections_max: at once, to all owners together.
    """

    items_max: int = 200
    seconds_max: float = 20.0
    connections_max: int = 8
    response_bytes_max: int = RESPONSE_BYTES_MAX

    def __post_init__(self) -> None:
        """Refuse limits that let nothing through."""
        if min(self.items_max, self.seconds_max, self.connections_max, self.response_bytes_max) <= 0:
            raise InvalidSetting("The limits of a reader are above 0.")
        if self.items_max > ITEMS_MAX:
            raise InvalidSetting(f"A call has at most {ITEMS_MAX} items.")


class HttpReader:
    """Asks owners at their addresses; a context manager that closes its connections.

    Args:
        owners: base URL of each owner, such as `http://127.0.0.1:8701`.
        signer: the caller's identity.
    """

    def __init__(self, owners: Mapping[str, str], *, signer: TokenSigner, limits: ReadLimits | None = None) -> None:
        self._owners = MappingProxyType({owner: url.rstrip("/") for owner, url in owners.items()})
        self._signer = signer
        self._limits = limits or ReadLimits()
        # No proxy and no setting of the environment takes part, and redirects are not followed.
        self._client = httpx.Client(
            timeout=httpx.Timeout(self._limits.seconds_max),
            limits=httpx.Limits(
                max_connections=self._limits.connections_max, max_keepalive_connections=self._limits.connections_max
            ),
            headers={"accept-encoding": "identity"},
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def call(self, operation: ReadOperation[A, R], arguments: Sequence[A]) -> list[R]:
        """See `Reader`."""
        base = self._owners.get(operation.audience)
        if base is None:
            raise InvalidSetting(f"Nothing says how to read {operation.audience}.")
        url = f"{base}{PATH}/{operation.name}"
        answers: list[R] = []
        for part in parts_of(arguments, self._limits.items_max):
            body = encode_request(operation, part, self._signer)
            answers += answers_of(operation, self._post(operation, url, body), len(part))
        return answers

    def _post(self, operation: ReadOperation[A, R], url: str, body: bytes) -> bytes:
        owner, name = operation.audience, operation.name
        try:
            with self._client.stream("POST", url, content=body, headers={"content-type": MEDIA_TYPE}) as response:
                status = response.status_code
                bytes_max = self._limits.response_bytes_max if status == HTTPStatus.OK else PROBLEM_BYTES_MAX
                content = bytearray()
                for piece in response.iter_raw():
                    content += piece
                    if len(content) > bytes_max:
                        raise OwnerUnreadable(owner, name, "its response is too large")
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise OwnerUnreadable(owner, name, type(error).__name__) from None
        if status == HTTPStatus.OK:
            return bytes(content)
        reason = f"status {status}{_reason(bytes(content))}"
        if status in _REFUSALS and status not in _PASSING:
            raise ReadRefused(owner, name, reason)
        raise OwnerUnreadable(owner, name, reason)


def _reason(content: bytes) -> str:
    """What a problem document says, for logs: one printable line."""
    try:
        detail = json.loads(content).get("detail", "")
    except (ValueError, AttributeError, RecursionError):
        return ""
    text = "".join(one for one in str(detail)[:REASON_CHARACTERS_MAX] if one.isprintable())
    return f", {text}" if text else ""
