"""The operations of the management interface (section 15), each as the call that it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orbit.sdk.addresses import segment
from orbit.sdk.answers import reading, reading_page
from orbit.sdk.requests import Call, get, keyed
from orbit.sdk.values import Delivery, Page, Subscription

ROOT: Final = "/v1/event-subscriptions"


def create_subscription(
    *,
    name: str,
    queue: str,
    types: Sequence[str] | None = None,
    from_sequence: int | None = None,
    max_pending: int | None = None,
    max_attempts: int | None = None,
    idempotency_key: str | None = None,
) -> Call[Subscription]:
    """Subscribe to the results of one queue: after the newest, or after `from_sequence`, 0 for the whole journal."""
    members = {
        "name": name,
        "queue": queue,
        "types": None if types is None else list(types),
        "from_sequence": from_sequence,
        "max_pending": max_pending,
        "max_attempts": max_attempts,
    }
    return keyed(ROOT, reading(Subscription), members, idempotency_key)


def get_subscription(subscription_id: str) -> Call[Subscription]:
    """One subscription. `cursor_sequence` is how far the journal was looked at, not what was acknowledged."""
    return get(_one(subscription_id), reading(Subscription))


def list_subscriptions(
    *, status: str | None = None, queue: str | None = None, limit: int = 50, cursor: str | None = None
) -> Call[Page[Subscription]]:
    """A page of the credential's subscriptions, the oldest first."""
    return get(ROOT, reading_page(Subscription), status=status, queue=queue, limit=limit, cursor=cursor)


def pause_subscription(
    subscription_id: str, *, expected_revision: int, reason: str | None = None, idempotency_key: str | None = None
) -> Call[Subscription]:
    """Deliver nothing new; ACKs still count. Raises Conflict when the revision is another one by now."""
    return _change("pause", subscription_id, expected_revision, reason, idempotency_key)


def resume_subscription(
    subscription_id: str, *, expected_revision: int, reason: str | None = None, idempotency_key: str | None = None
) -> Call[Subscription]:
    """Deliver again, from where it was. Raises Conflict when the revision is another one by now."""
    return _change("resume", subscription_id, expected_revision, reason, idempotency_key)


def list_deliveries(
    subscription_id: str, *, states: Sequence[str] = (), limit: int = 50, cursor: str | None = None
) -> Call[Page[Delivery]]:
    """A page of deliveries in the order of their sequence. One may look `LEASED` past its deadline (LSE-15)."""
    path = f"{_one(subscription_id)}/deliveries"
    return get(path, reading_page(Delivery), state=list(states), limit=limit, cursor=cursor)


def get_delivery(subscription_id: str, delivery_id: str) -> Call[Delivery]:
    """One delivery; results and secrets are not part of it."""
    return get(_delivery(subscription_id, delivery_id), reading(Delivery))


def list_exhausted(subscription_id: str, *, limit: int = 50, cursor: str | None = None) -> Call[Page[Delivery]]:
    """A page of the deliveries whose budget is used up: they wait for `retry_delivery` or a late ACK."""
    return get(f"{_one(subscription_id)}/exhausted", reading_page(Delivery), limit=limit, cursor=cursor)


def retry_delivery(
    subscription_id: str,
    delivery_id: str,
    *,
    expected_revision: int,
    reason: str,
    additional_attempts: int,
    idempotency_key: str | None = None,
) -> Call[Delivery]:
    """Add to the budget of an exhausted delivery. Raises Conflict when it is not exhausted, or was changed."""
    members = {"expected_revision": expected_revision, "reason": reason, "additional_attempts": additional_attempts}
    return keyed(f"{_delivery(subscription_id, delivery_id)}/retry", reading(Delivery), members, idempotency_key)


def _one(subscription_id: str) -> str:
    return f"{ROOT}/{segment(subscription_id)}"


def _delivery(subscription_id: str, delivery_id: str) -> str:
    return f"{_one(subscription_id)}/deliveries/{segment(delivery_id)}"


def _change(
    verb: str, subscription_id: str, expected_revision: int, reason: str | None, key: str | None
) -> Call[Subscription]:
    members = {"expected_revision": expected_revision, "reason": reason}
    return keyed(f"{_one(subscription_id)}/{verb}", reading(Subscription), members, key)
