"""Orders and invoices."""
# pyright: basic, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# Django has no types of its own.

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """One order; `revision` counts its changes."""

    id = models.CharField(primary_key=True, max_length=100)
    cents = models.PositiveIntegerField()
    revision = models.PositiveIntegerField(default=1)

    class Meta:
        """Nothing else of Django's is asked for."""

        app_label = "django_shop"

    def __str__(self) -> str:
        return str(self.id)


class Invoice(models.Model):
    """What one order costs."""

    order_id = models.CharField(primary_key=True, max_length=100)
    cents = models.PositiveIntegerField()

    class Meta:
        """Nothing else of Django's is asked for."""

        app_label = "django_shop"

    def __str__(self) -> str:
        return str(self.order_id)
