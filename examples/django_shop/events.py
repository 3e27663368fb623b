"""What an order tells, and to whom."""

from __future__ import annotations

import seapost


class OrderPlaced(seapost.Event, type="order.placed@1", producer="django-shop", aggregate="order"):
    """A customer has ordered."""

    order_id: str
    cents: int


application = seapost.Application("django-shop")
application.route(OrderPlaced, "billing")
