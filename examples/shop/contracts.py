"""What the two services agree on: the events, and who must learn them."""

from __future__ import annotations

import seapost


class OrderPlaced(seapost.Event, type="order.placed@1", producer="orders", aggregate="order"):
    """A customer has ordered."""

    order_id: str
    customer: str
    cents: int


class OrderCancelled(seapost.Event, type="order.cancelled@1", producer="orders", aggregate="order"):
    """The customer wants it no more."""

    order_id: str


application = seapost.Application("orders")
application.route(OrderPlaced, "billing")
application.route(OrderCancelled, "billing")
