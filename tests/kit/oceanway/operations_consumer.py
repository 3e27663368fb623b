"""The projector as its deliveries meet it: the real inbox, its transactions and its answers; and what it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from psycopg import sql

from oceanway.operations.projector import CONSUMER, DESTINATION, build_projection
from seapost.database.pool import open_pool, open_sync_pool
from seapost.inbox.receive import Receiving
from seapost.model.delivery import Claim, Fence
from seapost.model.delivery_set import DefinitionQuad, Member, ProjectionTarget
from seapost.model.outcome import Acknowledged, NonRetryable, Outcome
from seapost.transport.protocol import pack
from tests.kit.oceanway.operations import Told

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.reads.client import Reader
    from seapost.testing.databases import TestDatabase

ROLE: Final = "operations_test_consumer"
RECEIPT: Final = "OperationsProjectionAppliedReceipt"

TABLES: Final = {
    "operation_identity": "operation_id",
    "operation_summary": "operation_id",
    "pending_unlinked_reservations": "run_id",
    "exact_identifier_index": "operation_id",
    "timeline_entry": "operation_id",
    "finalization": "operation_id",
    "settlement_dimension": "operation_id",
    "late_case": "operation_id",
    "finalization_case": "operation_id",
    "finalization_case_request": "operation_id",
    "finalization_case_resolution": "operation_id",
}
"""Every table of the projection that names its operation; the two others are found by dimension and fence."""

UNSTABLE: Final = frozenset({"projection_version", "applied_at", "consumed_at"})
"""What says when, or for which version, and is no part of what the projection shows."""


class Consumer:
    """One version of the projection over a database; every call is one delivery or one batch of them."""

    def __init__(self, database: TestDatabase, runner: asyncio.Runner, receiving: Receiving, version: str) -> None:
        self._runner = runner
        self._receiving = receiving
        self._version = version
        with database.connect() as connection:
            row = connection.execute(
                "select delivery_set_version, encode(definition_digest, 'hex')"
                " from seapost.delivery_set_version where status = 'active'"
            ).fetchone()
        assert row is not None
        self.definition = DefinitionQuad(row[0], "1", "jcs-sha256-v1", row[1])

    def deliver(self, *told: Told) -> list[Outcome]:
        """Hand events over in one batch; one outcome for each."""
        (parcel,) = pack([self._claim(one) for one in told])
        return self._runner.run(self._receiving.receive(parcel.request))

    def accept(self, *told: Told) -> list[bytes]:
        """Deliver events one by one that must be acknowledged; their receipts."""
        receipts: list[bytes] = []
        for one in told:
            (outcome,) = self.deliver(one)
            assert isinstance(outcome, Acknowledged), (one.event, outcome)
            receipts.append(outcome.receipt)
        return receipts

    def code(self, told: Told) -> str:
        """Deliver one event; what it ended in, in one word."""
        (outcome,) = self.deliver(told)
        return code_of(outcome)

    def insist(self, events: Sequence[Told], *, rounds: int = 12) -> None:
        """Deliver events in this order, and what had to wait again, until all are acknowledged."""
        waiting = list(events)
        for _ in range(rounds):
            waiting = [one for one in waiting if not isinstance(self.deliver(one)[0], Acknowledged)]
            if not waiting:
                return
        raise AssertionError(f"{len(waiting)} events are never applied: {[type(one.event) for one in waiting]}")

    def _claim(self, told: Told) -> Claim:
        return Claim(
            destination=DESTINATION,
            fence=Fence(told.event_id, 41, uuid4()),
            attempt_number=1,
            failure_count=0,
            lost_count=0,
            company=1,
            member=Member(
                1,
                self.definition,
                told.event.event_type,
                told.event.event_schema_version,
                DESTINATION,
                CONSUMER,
                mandatory=True,
                receipt_type=RECEIPT,
                receipt_schema_version="1",
                projection=ProjectionTarget("operations", self._version),
            ),
            event_digest=sha256(told.envelope).digest(),
            envelope=told.envelope,
            available_at=datetime(2026, 1, 1, tzinfo=UTC),
        )


def code_of(outcome: Outcome) -> str:
    """What a delivery ended in: `acknowledged`, or its code, of which `!` says that it is for good."""
    if isinstance(outcome, Acknowledged):
        return "acknowledged"
    return f"{outcome.code}!" if isinstance(outcome, NonRetryable) else str(outcome.code)


def prepare_role(database: TestDatabase) -> None:
    """Make the login role of the process that serves operations."""
    with database.connect(autocommit=True) as connection:
        connection.execute(
            f"do $$ begin create role {ROLE} nologin;"
            " exception when duplicate_object or unique_violation then null; end $$"
        )
        connection.execute(
            f"grant oceanway_operations_consumer, oceanway_operations_reader, seapost_consumer to {ROLE}"
        )


@contextmanager
def projecting(database: TestDatabase, reader: Reader, *, version: str = "1") -> Generator[Consumer]:
    """Run the projector in the roles of its process."""
    prepare_role(database)
    projection = build_projection(reader, version=version)
    with database.connect(autocommit=True) as connection:
        _ = projection.register(connection, actor="tester")

    async def opened(stack: AsyncExitStack) -> Receiving:
        pool = await stack.enter_async_context(open_pool(database.dsn, part="inbox", role=ROLE, size_max=2))
        threads = stack.enter_context(open_sync_pool(database.dsn, part="inbox", role=ROLE, size_max=2))
        return await stack.enter_async_context(Receiving(projection.inbox, pool, threads))

    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        opening = AsyncExitStack()
        receiving = runner.run(opened(opening))
        stack.callback(lambda: runner.run(opening.aclose()))
        yield Consumer(database, runner, receiving, version)


def shown(connection: Connection[Any], run_id: str, version: str = "1") -> dict[str, list[Any]]:
    """Every row of the projection about one run, without what says when; equal however the events came."""
    rows = {table: _rows(connection, table, column, [run_id], version) for table, column in TABLES.items()}
    dimensions = [row["settlement_dimension_id"] for row in rows["settlement_dimension"]]
    fences = [row["fence_id"] for row in rows["finalization_case_request"]]
    rows["dimension_revision"] = _rows(connection, "dimension_revision", "settlement_dimension_id", dimensions, version)
    rows["pending_case_successors_v1"] = _rows(connection, "pending_case_successors_v1", "fence_id", fences, version)
    return rows


def _rows(connection: Connection[Any], table: str, column: str, keys: list[str], version: str) -> list[Any]:
    statement = sql.SQL(
        "select to_jsonb(t) from {table} as t where t.projection_version = %s and t.{column} = any (%s)"
    ).format(table=sql.Identifier("operations", table), column=sql.Identifier(column))
    rows = [
        {name: _stable(name, value) for name, value in row.items() if name not in UNSTABLE}
        for (row,) in connection.execute(statement, (version, keys))
    ]
    return sorted(rows, key=repr)


def _stable(name: str, value: object) -> object:
    """A pending successor is compared without the time and the receipt of its version."""
    return None if name in {"document", "receipt_ref"} else value
