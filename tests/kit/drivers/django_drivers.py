"""Django: `append` inside `transaction.atomic` on a database of its own alias."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, Literal, cast
from uuid import UUID

import django
from django import db
from django.conf import settings
from django.db import transaction

from seapost.contracts.envelope import PreparedEvent
from seapost.contracts.events import Event
from tests.kit.drivers.base import Driver, Rows
from tests.kit.drivers.psycopg_drivers import Rollback, threshold
from tests.kit.drivers.urls import parts_of

if not settings.configured:
    settings.configure(USE_TZ=True, INSTALLED_APPS=(), DATABASES={})  # pyright: ignore[reportUnknownMemberType]
    django.setup()

from seapost.adapters.django import append, append_many

_numbers: Final = itertools.count(1)
connections: Final = cast("Any", db.connections)
"""Django has no types."""


def add_database(dsn: str, *, prepared: bool = True, max_age_seconds: int | None = 0) -> str:
    """Make a database known to Django; its alias."""
    alias = f"test_{next(_numbers)}"
    parts = parts_of(dsn)
    connections.settings[alias] = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts["user"],
        "PASSWORD": parts["password"],
        "HOST": parts["host"],
        "PORT": parts["port"],
        "AUTOCOMMIT": True,
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": max_age_seconds,
        "CONN_HEALTH_CHECKS": False,
        "TIME_ZONE": None,
        "DISABLE_SERVER_SIDE_CURSORS": not prepared,
        "OPTIONS": {"prepare_threshold": threshold(prepared=prepared), "server_side_binding": prepared},
        "TEST": {},
    }
    return alias


def atomic(using: str) -> AbstractContextManager[None]:
    """`transaction.atomic`, with a type."""
    block: Any = transaction.atomic(using=using)  # pyright: ignore[reportUnknownMemberType]
    return block


class Django(Driver):
    """The ORM's connection; autocommit until a block is entered. Binds on the server where statements are prepared."""

    def __init__(self, dsn: str, *, prepared: bool, autocommit: bool) -> None:
        super().__init__(dsn, prepared=prepared, autocommit=autocommit)
        self.alias = add_database(dsn, prepared=prepared)
        self.blocks: list[ExitStack] = []

    def begin(self) -> None:
        """Enter a block."""
        self.begin_savepoint()

    def commit(self) -> None:
        """Leave it."""
        self.end_savepoint("release")

    def rollback(self) -> None:
        """Leave it with an error."""
        self.end_savepoint("rollback")

    def begin_savepoint(self) -> None:
        """Enter a block inside the block."""
        stack = ExitStack()
        stack.enter_context(atomic(self.alias))
        self.blocks.append(stack)

    def end_savepoint(self, how: Literal["release", "rollback"]) -> None:
        """Leave the innermost block."""
        error = Rollback() if how == "rollback" else None
        self.blocks.pop().__exit__(None if error is None else Rollback, error, None)

    def execute(self, statement: str) -> Rows:
        """Run one statement."""
        with connections[self.alias].cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def append(self, event: Event, **options: Any) -> UUID:
        """Append one event."""
        return append(event, using=self.alias, **options)

    def append_many(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        return append_many(events, using=self.alias)

    def close(self) -> None:
        """Close the connection."""
        connections[self.alias].close()


class DjangoClientBinding(Django):
    """Django's default: parameters are written into the statement by the client."""

    def __init__(self, dsn: str, *, prepared: bool, autocommit: bool) -> None:
        super().__init__(dsn, prepared=prepared, autocommit=autocommit)
        connections.settings[self.alias]["OPTIONS"] = {}
