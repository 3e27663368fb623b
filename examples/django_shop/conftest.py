"""Sets Django up on a database of `seapost.testing`: one for the process, because Django is set up once."""
# pyright: basic, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# Django has no types of its own.

from __future__ import annotations

import os
from collections.abc import Iterator

import django
import pytest
from django.db import connection

from seapost.database.installer import GuardLevel
from seapost.testing import DatabaseServer, TestDatabase

pytest_plugins = ["seapost.testing.plugin"]


@pytest.fixture(scope="session")
def project(seapost_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give the project's database, with its tables and routes."""
    database = seapost_server.create(GuardLevel.LEAN)
    os.environ["DJANGO_SHOP_DSN"] = database.dsn
    os.environ["DJANGO_SETTINGS_MODULE"] = "examples.django_shop.settings"
    django.setup()
    from examples.django_shop.events import application  # noqa: PLC0415 - models need a Django that is set up
    from examples.django_shop.models import Invoice, Order  # noqa: PLC0415 - as above

    database.route(application)
    with connection.schema_editor() as editor:
        for model in (Order, Invoice):
            editor.create_model(model)
    yield database
    connection.close()
    seapost_server.drop(database)
