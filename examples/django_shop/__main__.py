"""`python -m examples.django_shop`: place orders, deliver them to the inbox, compare the invoices.

Producer and consumer share one database here, as parts of one Django project often do. The embedded server and the
drain are those of `seapost.testing`; in production `seapost dispatch --app` runs the same inbox.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# Django has no types of its own.

from __future__ import annotations

import os
import sys
from typing import Final

import django
from django.db import connection

from seapost.database.installer import GuardLevel
from seapost.testing import TestDatabase, run_until_idle, serve_databases

ORDERS: Final = 30


def main() -> int:
    """Return 0 when every order has its invoice."""
    with serve_databases() as server:
        database = server.create(GuardLevel.LEAN)
        os.environ["DJANGO_SHOP_DSN"] = database.dsn
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "examples.django_shop.settings")
        django.setup()
        try:
            wrong = trade(database)
        finally:
            connection.close()
            server.drop(database)
    print(f"orders={ORDERS} wrong_invoices={wrong}")
    return int(wrong > 0)


def trade(database: TestDatabase) -> int:
    """Make the tables, be the customers, then the auditor; return how many invoices are wrong."""
    from examples.django_shop.billing import create_inbox  # noqa: PLC0415 - models need a Django that is set up
    from examples.django_shop.events import application  # noqa: PLC0415 - as above
    from examples.django_shop.models import Invoice, Order  # noqa: PLC0415 - as above
    from examples.django_shop.services import place_order  # noqa: PLC0415 - as above

    database.route(application)
    with connection.schema_editor() as editor:
        for model in (Order, Invoice):
            editor.create_model(model)
    for number in range(ORDERS):
        place_order(f"order-{number}", 100 + number)
    run_until_idle(database, create_inbox())
    orders = dict(Order.objects.values_list("id", "cents"))
    invoices = dict(Invoice.objects.values_list("order_id", "cents"))
    return sum(invoices.get(order_id) != cents for order_id, cents in orders.items()) + (len(orders) != ORDERS)


if __name__ == "__main__":
    sys.exit(main())
