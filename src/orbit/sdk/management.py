"""The management clients: subscriptions, their deliveries, manual retries (section 17). What a method sends stands in
`subscriptions.py`; here the same operations are given to an asynchronous and to a synchronous client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from orbit.sdk import subscriptions
from orbit.sdk.clients import AsyncHttpClient, HttpClient, async_operation, operation
from orbit.sdk.values import Delivery, Subscription


class AsyncManagementClient(AsyncHttpClient):
    """Manages the subscriptions of one credential.

    Every call repeats itself after connection errors, timeouts and 503, at most `max_retries` times, with the same
    idempotency key and body (SDK-04). Pass a key of your own where the repetition must survive your process.

    Args:
        base_url: `https://…`; plain `http` on this machine only.
        timeout: seconds for each step of one try.
    """

    create_subscription = async_operation(subscriptions.create_subscription)
    get_subscription = async_operation(subscriptions.get_subscription)
    list_subscriptions = async_operation(subscriptions.list_subscriptions)
    pause_subscription = async_operation(subscriptions.pause_subscription)
    resume_subscription = async_operation(subscriptions.resume_subscription)
    list_deliveries = async_operation(subscriptions.list_deliveries)
    get_delivery = async_operation(subscriptions.get_delivery)
    list_exhausted = async_operation(subscriptions.list_exhausted)
    retry_delivery = async_operation(subscriptions.retry_delivery)

    def iter_subscriptions(self, **filters: Any) -> AsyncIterator[Subscription]:
        """Every subscription, page by page; `filters` are those of `list_subscriptions`."""
        return self.pages(subscriptions.list_subscriptions, **filters)

    def iter_deliveries(self, subscription_id: str, **filters: Any) -> AsyncIterator[Delivery]:
        """Every delivery, page by page; `filters` are those of `list_deliveries`."""
        return self.pages(subscriptions.list_deliveries, subscription_id, **filters)


class ManagementClient(HttpClient):
    """Manages the subscriptions of one credential; as `AsyncManagementClient`, without `await`."""

    create_subscription = operation(subscriptions.create_subscription)
    get_subscription = operation(subscriptions.get_subscription)
    list_subscriptions = operation(subscriptions.list_subscriptions)
    pause_subscription = operation(subscriptions.pause_subscription)
    resume_subscription = operation(subscriptions.resume_subscription)
    list_deliveries = operation(subscriptions.list_deliveries)
    get_delivery = operation(subscriptions.get_delivery)
    list_exhausted = operation(subscriptions.list_exhausted)
    retry_delivery = operation(subscriptions.retry_delivery)

    def iter_subscriptions(self, **filters: Any) -> Iterator[Subscription]:
        """Every subscription, page by page; `filters` are those of `list_subscriptions`."""
        return self.pages(subscriptions.list_subscriptions, **filters)

    def iter_deliveries(self, subscription_id: str, **filters: Any) -> Iterator[Delivery]:
        """Every delivery, page by page; `filters` are those of `list_deliveries`."""
        return self.pages(subscriptions.list_deliveries, subscription_id, **filters)
