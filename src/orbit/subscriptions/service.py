"""Subscriptions and their deliveries as HTTP manages them (sections 5, 10, 11, 15).

Every change is one call of one SQL function (LCK-14). After the commit of a resume or a retry the pulls of this process
that wait for the subscription are woken (WSS-17). Bodies leave as the database wrote them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orbit.store import deliveries as delivery_store
from orbit.store import subscriptions as store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from psycopg import AsyncConnection

    from orbit.access.token import TokenDigest
    from orbit.journal.wake import WakeHub
    from orbit.store.answer import Answer
    from orbit.store.database import Database
    from orbit.store.subscriptions import Greeting, Managed


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list.

    Attributes:
        items: bodies, as JSON texts.
        last: key of the last item, to go on behind it; None for an empty page.
        more: whether there is anything behind it.
    """

    items: tuple[str, ...]
    last: tuple[Any, ...] | None
    more: bool


EMPTY_PAGE: Final = Page((), None, more=False)


class Subscriptions:
    """All operations on subscriptions, and the queries and the retry of deliveries.

    Every method raises OrbitError with the codes of section 20 that the specification names for the operation.
    """

    def __init__(self, database: Database, wakes: WakeHub) -> None:
        self._database = database
        self._wakes = wakes

    async def create(
        self,
        token: TokenDigest,
        *,
        name: str,
        queue: str,
        types: Sequence[str] | None = None,
        from_sequence: int | None = None,
        max_pending: int | None = None,
        max_attempts: int | None = None,
        idempotency_key: str,
        request_sha256: str,
    ) -> Answer:
        """Create a subscription; 201 with its body. None stands for an omitted member (SUB-12)."""
        order = store.Creation(
            name, queue, types, from_sequence, max_pending, max_attempts, idempotency_key, request_sha256
        )
        return await self._managed(lambda connection: store.create(connection, token.sha256, order))

    async def pause(
        self,
        token: TokenDigest,
        *,
        subscription_id: str,
        expected_revision: int,
        reason: str | None = None,
        idempotency_key: str,
        request_sha256: str,
    ) -> Answer:
        """Stop new materialisation and new claims (PAU-01)."""
        order = store.StatusChange(subscription_id, expected_revision, reason, idempotency_key, request_sha256)
        return await self._managed(lambda connection: store.pause(connection, token.sha256, order))

    async def resume(
        self,
        token: TokenDigest,
        *,
        subscription_id: str,
        expected_revision: int,
        reason: str | None = None,
        idempotency_key: str,
        request_sha256: str,
    ) -> Answer:
        """Let a paused subscription go on with its backlog (PAU-04)."""
        order = store.StatusChange(subscription_id, expected_revision, reason, idempotency_key, request_sha256)
        return await self._managed(lambda connection: store.resume(connection, token.sha256, order))

    async def retry(
        self,
        token: TokenDigest,
        *,
        subscription_id: str,
        delivery_id: str,
        expected_revision: int,
        reason: str,
        additional_attempts: int,
        idempotency_key: str,
        request_sha256: str,
    ) -> Answer:
        """Add to the budget of an `EXPIRED` delivery (section 10)."""
        order = store.RetryOrder(
            subscription_id,
            delivery_id,
            expected_revision,
            reason,
            additional_attempts,
            idempotency_key,
            request_sha256,
        )
        return await self._managed(lambda connection: store.retry(connection, token.sha256, order))

    async def get(self, token: TokenDigest, *, subscription_id: str) -> str:
        """The body of a subscription."""
        return await self._database.run(lambda connection: store.get(connection, token.sha256, subscription_id))

    async def list(
        self,
        token: TokenDigest,
        *,
        status: str | None = None,
        queue: str | None = None,
        limit: int,
        after: tuple[datetime, str] | None = None,
    ) -> Page:
        """The caller's own subscriptions, oldest first; `last` is creation time and id (API-08)."""
        narrowed = store.SubscriptionFilter(status, queue, after)
        found = await self._database.run(lambda connection: store.page(connection, token.sha256, narrowed, limit + 1))
        kept = found[:limit]
        if not kept:
            return EMPTY_PAGE
        return Page(tuple(body for *_, body in kept), kept[-1][:2], more=len(found) > limit)

    async def list_deliveries(
        self,
        token: TokenDigest,
        *,
        subscription_id: str,
        states: Sequence[str] | None = None,
        limit: int,
        after_sequence: int | None = None,
    ) -> Page:
        """Deliveries in ascending sequence, of the given states (none given: all); `last` is the sequence (API-08)."""
        found = await self._database.run(
            lambda connection: delivery_store.page(
                connection, token.sha256, subscription_id, states or None, limit + 1, after_sequence
            )
        )
        kept = found[:limit]
        if not kept:
            return EMPTY_PAGE
        return Page(tuple(body for _, body in kept), kept[-1][:1], more=len(found) > limit)

    async def get_delivery(self, token: TokenDigest, *, subscription_id: str, delivery_id: str) -> str:
        """The body of a delivery."""
        return await self._database.run(
            lambda connection: delivery_store.get(connection, token.sha256, subscription_id, delivery_id)
        )

    async def hello(self, token: TokenDigest, *, subscription_id: str) -> Greeting:
        """Check the right to consume, and say what a connection must know first (TX-16)."""
        return await self._database.run(lambda connection: store.hello(connection, token.sha256, subscription_id))

    async def _managed(self, work: Callable[[AsyncConnection[Any]], Awaitable[Managed]]) -> Answer:
        managed = await self._database.run(work)
        if managed.wake_subscription_id is not None:
            self._wakes.wake_subscription(managed.wake_subscription_id)
        return managed.answer
