"""Faults planted behind the back of a proof: a row dropped, doubled or altered, past every trigger, and taken back."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final, LiteralString, NamedTuple

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

COMPLETE: Final = "complete_for_supported_scope"
FOUND_NOTHING: Final[Mapping[str, str]] = {
    "id": "none",
    "version": "1",
    "digest": "0" * 64,
    "state": "passed",
    "resultDigest": "0" * 64,
}
"""What a semantic check says that found nothing."""

_PROVE: Final = (
    "select convert_from(seapost.completeness_prove_v1('accounts', '2', %s, true), 'UTF8')::jsonb ->> 'result'"
)


class Fault(NamedTuple):
    """A fault in one row of a table; the statement ends where the row is named."""

    name: str
    table: str
    statement: LiteralString


_FLIPPED: Final = " set envelope = set_byte(envelope, 20, get_byte(envelope, 20) # 1)"


FAULTS: Final = (
    Fault("event dropped", "seapost.event", "delete from seapost.event"),
    Fault("event altered", "seapost.event", "update seapost.event" + _FLIPPED),
    Fault("event of another type", "seapost.event", "update seapost.event set event_type = 'account.closed@1'"),
    Fault("event of another account", "seapost.event", "update seapost.event set aggregate_id = aggregate_id || 'x'"),
    Fault("event of another kind", "seapost.event", "update seapost.event set aggregate_kind = 'till'"),
    Fault(
        "event of another revision",
        "seapost.event",
        "update seapost.event set aggregate_revision = aggregate_revision + 1",
    ),
    Fault(
        "event doubled",
        "seapost.event",
        "insert into seapost.accepted_event (event_id, accepted_at, aggregate_revision, producer, event_type,"
        " schema_version, aggregate_kind, aggregate_id, envelope) select event_id, now(), aggregate_revision, 'shop',"
        " event_type, schema_version, aggregate_kind, aggregate_id, envelope from seapost.event",
    ),
    Fault("accepted event dropped", "seapost.accepted_event", "delete from seapost.accepted_event"),
    Fault("accepted event altered", "seapost.accepted_event", "update seapost.accepted_event" + _FLIPPED),
    Fault("receipt dropped", "seapost.inbox_receipt", "delete from seapost.inbox_receipt"),
    Fault(
        "receipt of other content",
        "seapost.inbox_receipt",
        "update seapost.inbox_receipt set event_digest = sha256(event_digest)",
    ),
    Fault(
        "receipt rewritten",
        "seapost.inbox_receipt",
        "update seapost.inbox_receipt set receipt_candidate = convert_to(replace(convert_from(receipt_candidate,"
        " 'UTF8'), event_id::text, gen_random_uuid()::text), 'UTF8')",
    ),
    Fault(
        "receipt of another event",
        "seapost.inbox_receipt",
        "update seapost.inbox_receipt set event_id = gen_random_uuid()",
    ),
    Fault("aggregate dropped", "seapost.projection_aggregate", "delete from seapost.projection_aggregate"),
    Fault(
        "aggregate ahead",
        "seapost.projection_aggregate",
        "update seapost.projection_aggregate set revision = revision + 1",
    ),
    Fault(
        "aggregate with another last event",
        "seapost.projection_aggregate",
        "update seapost.projection_aggregate set last_event_id = gen_random_uuid()",
    ),
    Fault("row of the view dropped", "public.balance_2", "delete from public.balance_2"),
    Fault("row of the view altered", "public.balance_2", "update public.balance_2 set balance = balance + 1"),
    Fault("row of the view renamed", "public.balance_2", "update public.balance_2 set account = account || 'x'"),
    Fault(
        "row of the view doubled",
        "public.balance_2",
        "insert into public.balance_2 select account || '2', revision, balance, trail from public.balance_2",
    ),
)


class _Undo(Exception):
    """Signal: the fault was judged; take it back."""


def missed_faults(connection: psycopg.Connection[Any], choice: random.Random, *, rounds: int) -> list[str]:
    """Plant every fault in a random row, once a round; the names of those after which a proof still says complete.

    The connection is a superuser's; its triggers sleep meanwhile, so nothing but the proof can notice.
    """
    connection.execute("set session_replication_role = replica")
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    try:
        return [fault.name for _ in range(rounds) for fault in FAULTS if _is_missed(connection, choice, fault)]
    finally:
        connection.isolation_level = None
        connection.execute("set session_replication_role = origin")


def _is_missed(connection: psycopg.Connection[Any], choice: random.Random, fault: Fault) -> bool:
    table = sql.Identifier(*fault.table.split("."))
    result = None
    try:
        with connection.transaction():
            rows = connection.execute(sql.SQL("select ctid from {} order by ctid").format(table)).fetchall()
            planted = sql.SQL(fault.statement) + sql.SQL(" where ctid = {}").format(sql.Literal(choice.choice(rows)[0]))
            connection.execute(planted)
            [(result,)] = connection.execute(_PROVE, (Jsonb(dict(FOUND_NOTHING)),)).fetchall()
            raise _Undo
    except _Undo:
        return result == COMPLETE
