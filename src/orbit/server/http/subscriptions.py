"""The endpoints of subscriptions and their deliveries (section 15)."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request, Response

from orbit.access.token import TokenDigest
from orbit.model.errors import OrbitError
from orbit.model.states import DeliveryState, SubscriptionStatus
from orbit.server.http.answering import answered, ok, path_id
from orbit.server.http.calls import read_caller, read_keyed_call
from orbit.server.http.cursors import CursorScope, read_sequence_key, read_time_key
from orbit.server.http.headers import bearer
from orbit.server.http.operations import SUBSCRIPTIONS
from orbit.server.http.query import Query, read_choices, read_cursor, read_limit, read_name, read_query
from orbit.subscriptions.service import Page, Subscriptions
from orbit.wire import bodies
from orbit.wire.times import time_text

_STATUSES = tuple(SubscriptionStatus)
_STATES = tuple(DeliveryState)


class SubscriptionEndpoints:
    """Create, read, list, pause, resume; read, list and retry deliveries."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions

    async def create(self, request: Request) -> Response:
        """Create a subscription."""
        call = await read_keyed_call(request, bodies.SubscriptionCreate)
        body = call.body
        answer = await self._subscriptions.create(
            call.token,
            name=body.name,
            queue=body.queue,
            types=body.types,
            from_sequence=body.from_sequence,
            max_pending=body.max_pending,
            max_attempts=body.max_attempts,
            **call.identity,
        )
        return answered(answer, SUBSCRIPTIONS, "subscription_id")

    async def get(self, request: Request) -> Response:
        """Read a subscription."""
        token = read_caller(request)
        return ok(await self._subscriptions.get(token, subscription_id=path_id(request, "subscription_id")))

    async def list(self, request: Request) -> Response:
        """List the caller's own subscriptions by time of creation and id."""
        token = bearer(request)
        query = read_query(request, {"limit", "cursor", "status", "queue"})
        limit, queue = read_limit(query), read_name(query, "queue")
        status = next(iter(read_choices(query, "status", _STATUSES)), None)
        scope = CursorScope(token, "subscriptions", status, queue)
        cursor = read_cursor(query)
        try:
            after = None if cursor is None else read_time_key(scope, cursor)
        except OrbitError:
            _ = await self._subscriptions.list(token, status=status, queue=queue, limit=1, after=None)
            raise
        page = await self._subscriptions.list(token, status=status, queue=queue, limit=limit, after=after)
        created_at, subscription_id = page.last or (None, "")
        following = scope.write(time_text(created_at), subscription_id) if page.more and created_at else None
        return _page(page.items, following)

    async def pause(self, request: Request) -> Response:
        """Pause a subscription."""
        call = await read_keyed_call(request, bodies.SubscriptionChange)
        answer = await self._subscriptions.pause(
            call.token,
            subscription_id=path_id(request, "subscription_id"),
            expected_revision=call.body.expected_revision,
            reason=call.body.reason,
            **call.identity,
        )
        return answered(answer)

    async def resume(self, request: Request) -> Response:
        """Resume a subscription."""
        call = await read_keyed_call(request, bodies.SubscriptionChange)
        answer = await self._subscriptions.resume(
            call.token,
            subscription_id=path_id(request, "subscription_id"),
            expected_revision=call.body.expected_revision,
            reason=call.body.reason,
            **call.identity,
        )
        return answered(answer)

    async def list_deliveries(self, request: Request) -> Response:
        """List deliveries by sequence."""
        token = bearer(request)
        query = read_query(request, {"limit", "cursor", "state"}, repeatable={"state"})
        return await self._deliveries(request, token, query, "deliveries", read_choices(query, "state", _STATES))

    async def list_exhausted(self, request: Request) -> Response:
        """List the deliveries whose budget is used up."""
        token = bearer(request)
        query = read_query(request, {"limit", "cursor"})
        return await self._deliveries(request, token, query, "exhausted", (DeliveryState.EXPIRED,))

    async def get_delivery(self, request: Request) -> Response:
        """Read a delivery."""
        token = read_caller(request)
        body = await self._subscriptions.get_delivery(
            token,
            subscription_id=path_id(request, "subscription_id"),
            delivery_id=path_id(request, "delivery_id"),
        )
        return ok(body)

    async def retry(self, request: Request) -> Response:
        """Add to the budget of a delivery."""
        call = await read_keyed_call(request, bodies.DeliveryRetry)
        answer = await self._subscriptions.retry(
            call.token,
            subscription_id=path_id(request, "subscription_id"),
            delivery_id=path_id(request, "delivery_id"),
            expected_revision=call.body.expected_revision,
            reason=call.body.reason,
            additional_attempts=call.body.additional_attempts,
            **call.identity,
        )
        return answered(answer)

    async def _deliveries(
        self, request: Request, token: TokenDigest, query: Query, name: str, states: Sequence[str]
    ) -> Response:
        limit, subscription_id = read_limit(query), path_id(request, "subscription_id")
        scope = CursorScope(token, name, subscription_id, list(states))

        async def page(limit: int, after: int | None) -> Page:
            return await self._subscriptions.list_deliveries(
                token, subscription_id=subscription_id, states=states, limit=limit, after_sequence=after
            )

        cursor = read_cursor(query)
        try:
            after = None if cursor is None else read_sequence_key(scope, cursor)
        except OrbitError:
            _ = await page(1, None)  # who may not read the list hears that, and nothing of cursors
            raise
        found = await page(limit, after)
        return _page(found.items, scope.write(*found.last) if found.more and found.last else None)


def _page(items: Sequence[str], following: str | None) -> Response:
    cursor = "null" if following is None else f'"{following}"'
    return ok(f'{{"items":[{",".join(items)}],"next_cursor":{cursor}}}')
