"""The project's own tests, through Django's ORM and transactions."""
# pyright: basic, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# Django has no types of its own.

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from examples.django_shop.events import OrderPlaced
from seapost.adapters.django import append
from seapost.testing import TestDatabase, assert_appended, refute_appended, run_until_idle


def test_an_order_and_its_event_are_one(project: TestDatabase) -> None:
    """Both are there, seen from inside the open transaction too; a repeated order leaves neither."""
    from examples.django_shop.services import place_order  # noqa: PLC0415 - models need a Django that is set up

    with transaction.atomic():
        place_order("order-1", 1990)
        assert_appended(connection, OrderPlaced, key="order-1")
        refute_appended(project, OrderPlaced, key="order-1")
    assert_appended(project, OrderPlaced, key="order-1", cents=1990, to={"billing"})
    with pytest.raises(IntegrityError):
        place_order("order-1", 5)
    refute_appended(project, OrderPlaced, cents=5)


def test_a_regretted_order_tells_nothing(project: TestDatabase) -> None:
    """An exception after the append takes the event with it."""
    from examples.django_shop.services import place_order  # noqa: PLC0415 - models need a Django that is set up

    def regret() -> None:
        with transaction.atomic():
            place_order("order-2", 1990)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        regret()
    refute_appended(project, OrderPlaced, key="order-2")


def test_an_order_becomes_one_invoice(project: TestDatabase) -> None:
    """Through the real inbox; a handler that the database refuses leaves no receipt, and its delivery waits."""
    from examples.django_shop.billing import create_inbox  # noqa: PLC0415 - models need a Django that is set up
    from examples.django_shop.models import Invoice  # noqa: PLC0415 - as above
    from examples.django_shop.services import place_order  # noqa: PLC0415 - as above

    run_until_idle(project, create_inbox())
    place_order("order-3", 300)
    with transaction.atomic():
        append(OrderPlaced(order_id="order-4", cents=-1), key="order-4", revision=1)
    drained = run_until_idle(project, create_inbox())
    assert (drained.acknowledged, drained.waiting) == (1, 1)
    assert list(Invoice.objects.filter(order_id__in=["order-3", "order-4"]).values_list("order_id", "cents")) == [
        ("order-3", 300)
    ]
    project.assert_places()
