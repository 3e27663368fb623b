"""Changes of an order: each in one `transaction.atomic`, together with its event."""
# pyright: basic, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# Django has no types of its own.

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from examples.django_shop.events import OrderPlaced
from examples.django_shop.models import Order
from seapost.adapters.django import append


def place_order(order_id: str, cents: int) -> UUID:
    """Store an order and its event; return the event's id.

    Raises:
        IntegrityError: the order exists already; nothing is stored.
    """
    with transaction.atomic():
        order = Order.objects.create(id=order_id, cents=cents)
        return append(OrderPlaced(order_id=order_id, cents=cents), key=order_id, revision=order.revision)
