# ruff: noqa: RUF001 - characters that look like others are the point
"""Text that wants to be SQL, and calls that hand it to every argument that takes text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from psycopg import sql

from tests.kit import builders
from tests.kit.rights import Function

STRINGS: Final[tuple[str, ...]] = (
    "'; drop table seapost.event; --",
    "billing'; update seapost.delivery_ready set destination = 'x'; --",
    "' or 1 = 1 --",
    "\\'; drop schema seapost cascade; --",
    "$$; alter role seapost_producer superuser; $$",
    "$body$ begin perform 1; end $body$",
    "billing'); select pg_terminate_backend(pg_backend_pid()); --",
    'billing"; grant all on seapost.event to public; --',
    '"seapost"."event"',
    "seapost.event",
    "%s %I %L %1$s %n %%",
    "{}[]()/*",
    "*/; reset role; /*",
    "select",
    "null",
    "pg_temp.billing",
    "billing; set role seapost_owner",
    "‘billing’ ＇ ʼ",
    "bill\u202eing\u200b\u00a0",
    "𝐬𝐞𝐥𝐞𝐜𝐭\U0010ffff",
    "a\nb\r\tc\x1b[2J\x7f",
    "x" * 10_000,
)
"""Quotes of every kind, dollar quotes, comments, format specifiers, identifiers, look-alikes, controls, length."""


def call(function: Function, text: str) -> sql.Composed:
    """A call that passes `text` wherever text goes, and something harmless of the right type elsewhere."""
    literal = sql.Literal(text)
    document = sql.Literal(builders.canonical({"version": text, text: [text], "destination": text}))
    values: Mapping[str, sql.Composable] = {
        "text": literal,
        "text[]": sql.SQL("array[{}]").format(literal),
        "jsonb": sql.SQL("pg_catalog.to_jsonb({}::pg_catalog.text)").format(literal),
        "bytea": document,
        "bytea[]": sql.SQL("array[{}::pg_catalog.bytea]").format(document),
        "uuid": sql.SQL("'01920000-0000-7000-8000-000000000001'"),
        "uuid[]": sql.SQL("array['01920000-0000-7000-8000-000000000001']"),
        "integer": sql.SQL("1"),
        "integer[]": sql.SQL("array[1]"),
        "bigint": sql.SQL("1"),
        "bigint[]": sql.SQL("array[1]"),
        "boolean": sql.SQL("true"),
        "boolean[]": sql.SQL("array[true]"),
        "interval": sql.SQL("'1 minute'"),
        "interval[]": sql.SQL("array['1 minute']"),
    }
    arguments = [
        sql.SQL("{}::{}").format(values.get(name, sql.SQL("null")), sql.SQL(name))  # pyright: ignore[reportArgumentType]
        for name in function.types
    ]
    if function.is_variadic:
        arguments[-1] = sql.SQL("variadic {}").format(arguments[-1])
    return sql.SQL("select * from {}({})").format(
        sql.Identifier("seapost", function.name), sql.SQL(", ").join(arguments)
    )
