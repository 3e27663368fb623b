"""What must be true before an event connection is accepted (WSS-02, WSS-03, F87).

Order: the service is ready, the subprotocol is named, the page behind the connection (if there is one) is allowed,
the token is valid and has the action. A token counts in the header only; a query string is never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from orbit.access.token import TokenDigest
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.server.http.answering import REQUEST_ID, name_request, problem
from orbit.server.http.headers import bearer
from orbit.wire.frames import PROTOCOL

RESPONSE_EXTENSION = "websocket.http.response"
POLICY_VIOLATION = 1008

OriginRule = Callable[[str, str], bool]
"""Whether a page of this origin may connect to this host."""


def allow_origins(allowed: Collection[str] = ()) -> OriginRule:
    """The rule that lets in the listed origins and pages of the host itself, and nobody else.

    Programs send no `Origin`; a browser always does, and a page of somebody else must not use what the browser knows.
    """
    listed = frozenset(origin.rstrip("/").lower() for origin in allowed)

    def rule(origin: str, host: str) -> bool:
        if origin.lower() in listed:
            return True
        try:
            return bool(host) and urlsplit(origin).netloc.lower() == host.lower()
        except ValueError:
            return False

    return rule


def check_request(scope: Scope, origin_rule: OriginRule) -> TokenDigest:
    """What the request itself says; gives the digest of its token.

    Raises:
        OrbitError: the refusal.
    """
    if PROTOCOL not in scope.get("subprotocols", ()):
        raise OrbitError(ErrorCode.SUBPROTOCOL_REQUIRED)
    request = HTTPConnection(scope)
    host = request.headers.get("host", "")
    if not all(origin_rule(origin, host) for origin in request.headers.getlist("origin")):
        raise OrbitError(ErrorCode.ACTION_NOT_ALLOWED, "pages of this Origin may not connect")
    return bearer(request)


async def refuse(scope: Scope, receive: Receive, send: Send, error: OrbitError) -> None:
    """Answer the handshake with a problem (API-05); where the server cannot, by refusing it."""
    if RESPONSE_EXTENSION in scope.get("extensions", {}):
        request_id = name_request(scope)
        await problem(scope, error, {REQUEST_ID: request_id})(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": POLICY_VIOLATION})
