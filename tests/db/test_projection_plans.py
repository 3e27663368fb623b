"""What applying a batch touches does not grow with what was applied before, whatever the server knew at planning."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

import pytest

from seapost.model.delivery_set import ProjectionTarget
from seapost.store import inbox, projections
from seapost.store.inbox import NewReceipt
from seapost.store.projections import Advance, AggregateKey, Gap
from tests.kit import builders
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.planners import pages_of, use_planner

TARGET = ProjectionTarget("parcels", "1")
BATCH = 50
SMALL, LARGE = 200, 4_000


@pytest.mark.req("F18", "OPS-03", "OPS-11")
def test_plans_made_on_empty_tables_stay_bounded_behind_a_large_projection(database: TestDatabase) -> None:
    """The plans were made when the tables were empty and vacuumed; behind 4,000 aggregates each call touches as few
    pages.
    """
    kernel = Kernel(database.connect(autocommit=True))
    projections.register(
        kernel.connection, target=TARGET, pairs=[], tables=[], receipt_key="c@parcels@1", actor="tester"
    )
    kernel.run("vacuum analyze")
    use_planner(kernel, {"plan_cache_mode": "force_generic_plan"})
    with kernel.connection.transaction(force_rollback=True):
        _ = _measure(kernel, [_key(number) for number in range(BATCH)], [builders.new_event_id()], 0)
    small = _fill_and_measure(kernel, 0, SMALL)
    large = _fill_and_measure(kernel, SMALL, LARGE)
    assert all(pages > BATCH for pages in small.values()), small
    for call, pages in large.items():
        # One more level of an index costs a page per probe, of which a call makes up to two for each of its 50 rows.
        assert pages <= small[call] * 1.15 + 150, (call, small, large)


def _key(number: int) -> AggregateKey:
    return AggregateKey("shop", "parcel", f"parcel-{number}")


def _fill_and_measure(kernel: Kernel, start: int, end: int) -> dict[str, int]:
    """Apply as many aggregates, leave a resolved gap behind each and one open gap in all, and measure a batch."""
    connection = kernel.connection
    keys = [_key(number) for number in range(start, end)]
    event_ids = [builders.new_event_id() for _ in keys]
    for at in range(0, len(keys), 1000):
        part = keys[at : at + 1000]
        with connection.transaction():
            projections.meet(connection, target=TARGET, token=None, event_ids=[], keys=part)
            projections.wait(connection, target=TARGET, gaps=[Gap(key, 1, 2) for key in part])
            moved = [Advance(key, 0, 1, event_id) for key, event_id in zip(part, event_ids[at:], strict=False)]
            projections.advance(connection, target=TARGET, advances=moved)
            receipts = [NewReceipt(one, bytes(32), "r", b"{}") for one in event_ids[at : at + 1000]]
            inbox.record(connection, consumer="c", receipts=receipts)
    projections.wait(connection, target=TARGET, gaps=[Gap(keys[-1], 5, 6)])
    kernel.run("vacuum seapost.projection_aggregate, seapost.projection_gap, seapost.inbox_receipt")
    return _measure(kernel, keys[:BATCH], event_ids[:BATCH])


def _measure(kernel: Kernel, keys: list[AggregateKey], event_ids: list[UUID], revision: int = 1) -> dict[str, int]:
    """The pages of each call for these aggregates, which are at this revision, and these known events."""
    producers, kinds, ids = ([key[place] for key in keys] for place in range(3))
    number = len(keys)
    fresh = [builders.new_event_id() for _ in range(BATCH)]
    calls: dict[str, tuple[LiteralString, tuple[object, ...]]] = {
        "inbox meet": (
            "select * from seapost.inbox_meet_v1('c', %s, %s)",
            (event_ids, [bytes(32)] * len(event_ids)),
        ),
        "inbox record": (
            "select seapost.inbox_record_v1('c', %s, %s, %s, %s)",
            (fresh, [bytes(32)] * BATCH, ["r"] * BATCH, [b"{}"] * BATCH),
        ),
        "meet": (
            "select * from seapost.projection_meet_v2('parcels', '1', null, %s, %s, %s, %s)",
            (event_ids[:1], producers, kinds, ids),
        ),
        "wait": (
            "select seapost.projection_wait_v1('parcels', '1', %s, %s, %s, %s::bigint[], %s::bigint[])",
            (producers, kinds, ids, [revision + 1] * number, [revision + 2] * number),
        ),
        "advance": (
            "select seapost.projection_advance_v1('parcels', '1', %s, %s, %s, %s::bigint[], %s::bigint[], %s)",
            (producers, kinds, ids, [revision] * number, [revision + 1] * number, [event_ids[0]] * number),
        ),
    }
    return {
        name: pages_of(kernel, lambda session, call=call: session.rows(call[0], *call[1]))[0]
        for name, call in calls.items()
    }
