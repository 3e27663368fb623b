"""The three databases of the demo: the producer's and one for each consumer, made new for each run.

Every process connects with no more rights than its part needs: the role is set when the session starts, so that a
missing grant would show here first.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Final, LiteralString

import psycopg
from psycopg import conninfo, sql

from examples.flights.events import MILEAGE, PUNCTUALITY, application
from seapost.database.installer import migrate
from seapost.outbox import routes

SOURCE: Final = "source"
ACTOR: Final = "flights-demo"
OBSERVER: Final = "flights-observer"
"""How the demo's own sessions call themselves, so that the chaos never ends them."""

_TABLES: Final[Mapping[str, LiteralString]] = {
    SOURCE: """
        create table flight (
            flight_id int primary key,
            flight_key text not null unique,
            carrier text not null,
            origin text not null,
            destination text not null,
            cancelled boolean not null,
            event_id uuid not null unique
        );
        create table taken_back (event_id uuid primary key);
        comment on table taken_back is 'events of transactions that were rolled back on purpose: none may ever be seen';
        grant select, insert on flight, taken_back to seapost_producer;""",
    PUNCTUALITY: """
        create table punctuality (
            carrier text primary key,
            flights int not null default 0,
            on_time int not null default 0,
            delay_minutes int not null default 0,
            cancelled int not null default 0
        );
        grant select, insert, update on punctuality to seapost_consumer;""",
    MILEAGE: """
        create table mileage (
            tailnum text primary key,
            flights int not null default 0,
            miles int not null default 0
        );
        grant select, insert, update on mileage to seapost_consumer;""",
}


@dataclass(frozen=True, slots=True)
class Databases:
    """Connection strings of the run's databases, with all rights; `as_role` takes rights away.

    Attributes:
        names: database name by part.
        dsns: connection string by part: `source`, `punctuality`, `mileage`.
        server_dsn: the server's own database, to make and drop the others.
    """

    names: Mapping[str, str]
    dsns: Mapping[str, str]
    server_dsn: str

    @property
    def source(self) -> str:
        """The producer's database."""
        return self.dsns[SOURCE]

    def as_role(self, part: str, role: str) -> str:
        """The connection string of a part whose sessions start with the rights of one role."""
        return conninfo.make_conninfo(self.dsns[part], options=f"-c role=seapost_{role}")

    def observe(self, part: str) -> psycopg.Connection:
        """Open a session that only looks, with no time limits and no transaction left open."""
        return psycopg.connect(self.dsns[part], autocommit=True, application_name=OBSERVER)


def choose_names(server_dsn: str) -> Databases:
    """Names for the databases of one run, which nobody else on the server has."""
    suffix = secrets.token_hex(4)
    names = {part: f"flights_{part}_{suffix}" for part in _TABLES}
    dsns = {part: conninfo.make_conninfo(server_dsn, dbname=name) for part, name in names.items()}
    return Databases(names, dsns, server_dsn)


def create(databases: Databases) -> None:
    """Make and migrate the databases, their tables and grants, and activate the routes."""
    with psycopg.connect(databases.server_dsn, autocommit=True, application_name=OBSERVER) as connection:
        for name in databases.names.values():
            _ = connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    for part, statements in _TABLES.items():
        _ = migrate(databases.dsns[part])
        with databases.observe(part) as connection:
            _ = connection.execute(statements)
    asyncio.run(_apply_routes(databases))


def drop(databases: Databases) -> None:
    """Drop those of the databases that exist, whoever is still connected."""
    with psycopg.connect(databases.server_dsn, autocommit=True, application_name=OBSERVER) as connection:
        for name in databases.names.values():
            _ = connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


async def _apply_routes(databases: Databases) -> None:
    """Activate the routes where events are appended, and register them where receipts are checked."""
    release = f"flights demo, seapost {metadata.version('seapost')}"
    async with await psycopg.AsyncConnection.connect(databases.source, application_name=OBSERVER) as connection:
        plan = await routes.plan(connection, application)
        await routes.apply(connection, plan.definition, source_release=release, actor=ACTOR)
    for part in (PUNCTUALITY, MILEAGE):
        async with await psycopg.AsyncConnection.connect(databases.dsns[part], application_name=OBSERVER) as connection:
            await routes.register(connection, plan.definition, source_release=release, actor=ACTOR)
