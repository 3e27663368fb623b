"""Every library and mode that the conformance suite runs on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.kit.drivers.asyncpg_drivers import Asyncpg, AsyncpgPool
from tests.kit.drivers.base import Driver
from tests.kit.drivers.django_drivers import Django, DjangoClientBinding
from tests.kit.drivers.psycopg_drivers import (
    PlainSql,
    PsycopgAsync,
    PsycopgClientCursor,
    PsycopgPipeline,
    PsycopgPool,
    PsycopgSync,
)
from tests.kit.drivers.sqlalchemy_drivers import (
    AlchemyConnection,
    AlchemySession,
    AsyncAlchemyConnection,
    AsyncAlchemyPsycopg,
    AsyncAlchemySession,
)

DRIVERS: Final[Mapping[str, type[Driver]]] = {
    "sql": PlainSql,
    "psycopg": PsycopgSync,
    "psycopg-client-cursor": PsycopgClientCursor,
    "psycopg-async": PsycopgAsync,
    "psycopg-pool": PsycopgPool,
    "psycopg-pipeline": PsycopgPipeline,
    "sqlalchemy-connection": AlchemyConnection,
    "sqlalchemy-session": AlchemySession,
    "sqlalchemy-async-psycopg": AsyncAlchemyPsycopg,
    "sqlalchemy-async-connection-asyncpg": AsyncAlchemyConnection,
    "sqlalchemy-async-session-asyncpg": AsyncAlchemySession,
    "asyncpg": Asyncpg,
    "asyncpg-pool": AsyncpgPool,
    "django": Django,
    "django-client-binding": DjangoClientBinding,
}
