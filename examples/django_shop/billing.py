"""The consumer: its handler uses the ORM, in the transaction that holds the receipt."""
# pyright: basic, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# Django has no types of its own.

from __future__ import annotations

import seapost
from examples.django_shop.events import OrderPlaced
from examples.django_shop.models import Invoice
from seapost.adapters.django import DjangoTransactions


def create_inbox() -> seapost.Inbox:
    """The inbox of billing, on Django's default database."""
    inbox = seapost.Inbox("billing", transactions=DjangoTransactions())

    @inbox.consumer(OrderPlaced)
    def bill(_: object, event: OrderPlaced) -> None:
        """Write the invoice."""
        Invoice.objects.create(order_id=event.order_id, cents=event.cents)

    return inbox
