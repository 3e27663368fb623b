"""A projection: each event once, in the order of its aggregate, with receipt, gap and summary in one transaction."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest

from seapost.contracts.envelope import Aggregate
from seapost.database.installer import GuardLevel
from seapost.inbox.deciding import Arrived
from seapost.model.errors import Retry
from seapost.model.outcome import Acknowledged, Retryable
from seapost.telemetry import metrics
from seapost.telemetry.catalog import REVISION_GAPS
from tests.kit import builders
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.deciding import VIEWER, ViewReceipt, prepare_database, running
from tests.kit.kernel import Kernel
from tests.kit.parcels import View, applied_count, codes, event, gaps, parcels, revision

SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def shared(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give one database to all tests here; every test has its own parcels."""
    database = database_server.create(GuardLevel.STRICT)
    prepare_database(database)
    with database.connect(autocommit=True) as connection:
        assert parcels("1").register(connection, actor="tester") == "active"
        assert parcels("2").register(connection, actor="tester") == "building"
    yield database
    database_server.drop(database)


@pytest.fixture
def kernel(shared: TestDatabase) -> Iterator[Kernel]:
    """Give an onlooker."""
    with shared.connect(autocommit=True) as connection:
        yield Kernel(connection)


@pytest.fixture
def parcel() -> str:
    """Give the name of a parcel of this test."""
    return f"parcel-{builders.new_event_id()}"


def open_gaps(kernel: Kernel) -> int:
    """How many gaps the view of the versions shows."""
    return kernel.value("select open_gaps from seapost.projection_versions where projection_version = '1'")


def counted_gaps() -> int:
    """How many gaps this process last counted, as it tells its metrics."""
    lines = metrics.exposition().decode().splitlines()
    (line,) = (one for one in lines if one.startswith(f'{REVISION_GAPS.name}{{consumer="{VIEWER}"}}'))
    return int(float(line.rsplit(" ", 1)[1]))


@pytest.mark.req("OPS-01", "OPS-02", "OPS-03", "OPS-05", "OPS-06", "OPS-07", "ORD-02", "RCP-03")
async def test_an_applied_event_leaves_mutation_revision_summary_and_receipt(
    shared: TestDatabase, kernel: Kernel, parcel: str
) -> None:
    """All from one transaction: they carry one time, and the receipt names projection, version, event and digest."""
    held = event(parcel, 1)
    before = applied_count(kernel)
    async with running(shared, parcels().inbox) as behind:
        (answer,) = await behind.receive(held)
        assert behind.effects(held) == ["apply@1"]
    assert isinstance(answer, Acknowledged)
    receipt = ViewReceipt.decode(answer.receipt)
    assert (receipt.projection_name, receipt.projection_version) == ("parcels", "1")
    assert (receipt.event_id, receipt.event_envelope_sha256) == (str(held.fence.event_id), held.event_digest.hex())
    assert receipt.view_receipt_ref == f"viewer@parcels@1:{held.fence.event_id}"
    assert revision(kernel, parcel) == 1
    assert applied_count(kernel) == before + 1
    moments = kernel.row(
        "select committed_at, last_applied_at from seapost.inbox_receipts, seapost.projection_versions"
        " where event_id = %s and projection_version = '1'",
        held.fence.event_id,
    )
    written = datetime.fromisoformat(receipt.applied_at)
    assert [moment.astimezone(UTC) for moment in moments] == [written, written]


@pytest.mark.req("OPS-04", "OPS-09", "ORD-02", "DLV-20")
async def test_a_redelivery_changes_nothing_and_gets_the_first_receipt(
    shared: TestDatabase, kernel: Kernel, parcel: str
) -> None:
    """Also after later revisions were applied, and among new events of the same batch."""
    view = View()
    first, second, third = (event(parcel, number) for number in (1, 2, 3))
    async with running(shared, parcels(view=view).inbox) as behind:
        answers = await behind.receive(first, second)
        count = applied_count(kernel)
        again = await behind.receive(third, first, second)
    assert again[1:] == answers
    assert codes(again) == ["applied"] * 3
    assert view.applied == [(parcel, 1), (parcel, 2), (parcel, 3)]
    assert (revision(kernel, parcel), applied_count(kernel)) == (3, count + 1)


@pytest.mark.req("OPS-10", "NEG-34", "OPS-02")
async def test_the_same_event_with_another_digest_is_refused_for_good(
    shared: TestDatabase, kernel: Kernel, parcel: str
) -> None:
    """Its own bytes are right, its identity is taken: digest_conflict, and the view stays as it was."""
    held = event(parcel, 1)
    other = event(parcel, 2, event_id=str(held.fence.event_id))
    async with running(shared, parcels().inbox) as behind:
        assert codes(await behind.receive(held, other)) == ["applied", "digest_conflict"]
        assert behind.effects(held) == ["apply@1"]
    assert revision(kernel, parcel) == 1


@pytest.mark.req("OPS-04", "ORD-02")
async def test_a_revision_applied_from_another_event_is_an_identity_conflict(
    shared: TestDatabase, kernel: Kernel, parcel: str
) -> None:
    """In a later batch as in the same one; revision and receipt are those of the first."""
    twin, other = event(parcel, 1), event(parcel, 1)
    async with running(shared, parcels().inbox) as behind:
        assert sorted(codes(await behind.receive(twin, other))) == ["applied", "identity_conflict"]
        assert codes(await behind.receive(event(parcel, 1))) == ["identity_conflict"]
        assert len(behind.receipts(twin, other)) == 1
    assert revision(kernel, parcel) == 1


# Gaps ------------------------------------------------------------------------------------------------------


@pytest.mark.req("OPS-11", "AMB-17", "NEG-34", "NEG-46", "REF-51")
async def test_a_gap_is_recorded_without_a_receipt_and_heals(shared: TestDatabase, kernel: Kernel, parcel: str) -> None:
    """Revision 3 waits however often it comes; once 2 was applied it is applied, and the gap is resolved."""
    first, second, third = (event(parcel, number) for number in (1, 2, 3))
    async with running(shared, parcels().inbox) as behind:
        count = applied_count(kernel)
        assert codes(await behind.receive(first)) == ["applied"]
        for _ in range(2):
            (waiting,) = await behind.receive(third)
            assert isinstance(waiting, Retryable)
            assert waiting.code == "revision_gap"
        assert (behind.effects(third), behind.receipts(third)) == ([], set())
        assert gaps(kernel, parcel) == [(2, 3, True)]
        assert open_gaps(kernel) == counted_gaps()
        assert (revision(kernel, parcel), applied_count(kernel)) == (1, count + 1)
        assert codes(await behind.receive(second)) == ["applied"]
        assert gaps(kernel, parcel) == [(2, 3, False)]
        assert open_gaps(kernel) == counted_gaps()
        assert codes(await behind.receive(third)) == ["applied"]
    assert (revision(kernel, parcel), applied_count(kernel)) == (3, count + 3)


@pytest.mark.req("OPS-11", "NEG-46")
async def test_a_gap_before_the_first_revision_is_all_that_stays(
    shared: TestDatabase, kernel: Kernel, parcel: str
) -> None:
    """No receipt, no effect, and the aggregate counts as never applied; the view of the versions shows the gap."""
    late = event(parcel, 4)
    async with running(shared, parcels().inbox) as behind:
        assert codes(await behind.receive(late)) == ["revision_gap"]
        assert (behind.effects(late), behind.receipts(late)) == ([], set())
    assert gaps(kernel, parcel) == [(1, 4, True)]
    assert kernel.rows("select 1 from seapost.projection_aggregates where aggregate_id = %s", parcel) == []
    shown = kernel.row(
        "select open_gaps, oldest_gap_at from seapost.projection_versions where projection_version = '1'"
    )
    assert shown[0] >= 1
    assert shown[1] is not None


@pytest.mark.req("ORD-02", "OPS-04")
async def test_one_batch_is_applied_in_the_order_of_revisions(
    shared: TestDatabase, kernel: Kernel, parcel: str
) -> None:
    """Though the ids of the events say the reverse: no gap is left behind."""
    view = View()
    claims = [event(parcel, number) for number in (5, 4, 3, 2, 1)]
    async with running(shared, parcels(view=view).inbox) as behind:
        assert codes(await behind.receive(*claims)) == ["applied"] * 5
    assert [number for _, number in view.applied] == [1, 2, 3, 4, 5]
    assert (revision(kernel, parcel), gaps(kernel, parcel)) == (5, [])


@pytest.mark.req("OPS-04", "OPS-11", "AMB-17")
async def test_a_mutation_that_has_to_wait_leaves_the_revision(
    shared: TestDatabase, kernel: Kernel, parcel: str
) -> None:
    """What it wrote stays, it has no receipt, and later events of the aggregate wait behind it."""
    view = View()
    claims = [event(parcel, 1), event(parcel, 2, "hold"), event(parcel, 3)]
    other = event(f"{parcel}-other", 1)
    async with running(shared, parcels(view=view).inbox) as behind:
        outcomes = codes(await behind.receive(*claims, other))
        assert outcomes == ["applied", "owner_unreadable", "revision_gap", "applied"]
        assert behind.effects(*claims) == ["apply@1", "hold@1"]
        assert behind.receipts(*claims) == {claims[0].fence.event_id}
        assert (revision(kernel, parcel), gaps(kernel, parcel)) == (1, [(2, 3, True)])
        view.acts["hold"] = lambda: None
        assert codes(await behind.receive(*claims[1:])) == ["applied", "applied"]
    assert (revision(kernel, parcel), gaps(kernel, parcel)) == (3, [(2, 3, False)])


@pytest.mark.req("OPS-08", "NEG-46")
async def test_when_a_mutation_fails_nothing_of_it_stays(shared: TestDatabase, kernel: Kernel, parcel: str) -> None:
    """No effect, no revision, no count, no receipt; other aggregates of the batch are applied."""
    claims = [event(parcel, 1), event(parcel, 2, "fail"), event(parcel, 3), event(f"{parcel}-other", 1)]
    count = applied_count(kernel)
    async with running(shared, parcels().inbox) as behind:
        outcomes = codes(await behind.receive(*claims))
        assert outcomes == ["applied", "dependency_unavailable", "revision_gap", "applied"]
        assert behind.effects(*claims) == ["apply@1", "apply@1"]
        assert behind.receipts(*claims) == {claims[0].fence.event_id, claims[3].fence.event_id}
    assert (revision(kernel, parcel), applied_count(kernel)) == (1, count + 2)


@pytest.mark.req("OPS-08", "OPS-09", "NEG-46")
async def test_a_lost_connection_leaves_no_part_of_an_application(
    shared: TestDatabase, kernel: Kernel, parcel: str
) -> None:
    """The connection dies between the receipt and the commit: no effect, revision, count or receipt stays."""
    held = event(parcel, 1)
    count = applied_count(kernel)
    kernel.run(
        "create function public.die() returns trigger language plpgsql security definer as $$ begin"
        " perform pg_terminate_backend(pg_backend_pid()); return null; end $$"
    )
    kernel.run(
        "create constraint trigger die after insert on seapost.inbox_receipt deferrable initially deferred"
        " for each row execute function public.die()"
    )
    try:
        async with running(shared, parcels().inbox) as behind:
            assert codes(await behind.receive(held)) == ["dependency_unavailable"]
            assert (behind.effects(held), behind.receipts(held)) == ([], set())
        assert (revision(kernel, parcel), applied_count(kernel)) == (0, count)
    finally:
        kernel.run("drop trigger die on seapost.inbox_receipt")
        kernel.run("drop function public.die()")
    async with running(shared, parcels().inbox) as behind:
        first = await behind.receive(held)
        assert codes(first) == ["applied"]
        assert await behind.receive(held) == first
    assert (revision(kernel, parcel), applied_count(kernel)) == (1, count + 1)


@pytest.mark.req("OPS-08", "NEG-46")
async def test_a_mutation_returns_nothing_but_a_retry(shared: TestDatabase, kernel: Kernel, parcel: str) -> None:
    """Anything else is an error of the program and leaves nothing."""
    view = View(acts={"odd": lambda: "done"})
    held = event(parcel, 1, "odd")
    async with running(shared, parcels(view=view).inbox) as behind:
        assert codes(await behind.receive(held)) == ["dependency_unavailable"]
        assert (behind.effects(held), revision(kernel, parcel)) == ([], 0)


@pytest.mark.req("AMB-35", "OPS-11")
async def test_what_was_prepared_reaches_the_mutation_or_holds_back_its_aggregate(
    shared: TestDatabase, kernel: Kernel, parcel: str
) -> None:
    """An owner that cannot be read stops the event and those after it, and no other aggregate."""

    def prepare(items: Sequence[Arrived]) -> Sequence[object]:
        unreadable = Retry("away", code="owner_unreadable")
        stopped = Aggregate("parcel", parcel, 2)
        return [unreadable if item.received.aggregate == stopped else "read" for item in items]

    claims = [event(parcel, 1), event(parcel, 2), event(parcel, 3), event(f"{parcel}-other", 1)]
    async with running(shared, parcels(prepare=prepare).inbox) as behind:
        outcomes = codes(await behind.receive(*claims))
    assert outcomes == ["applied", "owner_unreadable", "revision_gap", "applied"]
    assert gaps(kernel, parcel) == [(2, 3, True)]


# Any order -------------------------------------------------------------------------------------------------


@pytest.mark.req("OPS-04", "OPS-11", "ORD-02", "ORD-03", "TST-27")
@pytest.mark.parametrize("seed", SEEDS)
async def test_any_order_of_deliveries_ends_in_the_same_view(
    shared: TestDatabase, kernel: Kernel, parcel: str, seed: int
) -> None:
    """Random batches with repetitions: each aggregate is applied once in its own order; no gap stays open."""
    rng = random.Random(seed)
    view = View()
    names = [f"{parcel}-{letter}" for letter in "abcd"]
    waiting = {(name, number): event(name, number) for name in names for number in range(1, 7)}
    everything = list(waiting.values())
    count = applied_count(kernel)
    async with running(shared, parcels(view=view).inbox) as behind:
        while waiting:
            keys = rng.sample(sorted(waiting), rng.randint(1, len(waiting)))
            repeated = rng.sample(everything, rng.randint(0, 3))
            outcomes = await behind.receive(*[waiting[key] for key in keys], *repeated)
            for key, outcome in zip(keys, outcomes, strict=False):
                if isinstance(outcome, Acknowledged):
                    del waiting[key]
                else:
                    assert codes([outcome]) == ["revision_gap"]
        assert behind.receipts(*everything) == {one.fence.event_id for one in everything}
    for name in names:
        assert [number for parcel_name, number in view.applied if parcel_name == name] == [1, 2, 3, 4, 5, 6]
        assert revision(kernel, name) == 6
        assert all(not is_open for _, _, is_open in gaps(kernel, name))
    assert applied_count(kernel) == count + 24


@pytest.mark.req("OPS-03", "OPS-04", "OPS-09", "ORD-02", "DLV-14", "F18")
@pytest.mark.parametrize("seed", SEEDS)
async def test_overlapping_batches_at_the_same_time_apply_everything_once(
    shared: TestDatabase, kernel: Kernel, parcel: str, seed: int
) -> None:
    """Four transactions at a time over the same events and aggregates, in any order: one effect for each event."""
    rng = random.Random(seed)
    view = View()
    names = [f"{parcel}-{letter}" for letter in "abc"]
    everything = [event(name, number) for name in names for number in range(1, 9)]
    async with running(shared, parcels(view=view).inbox) as behind:
        answers: dict[UUID, set[bytes]] = {}
        while len(behind.receipts(*everything)) < len(everything):
            batches = [rng.sample(everything, rng.randint(1, len(everything))) for _ in range(4)]
            for batch, outcomes in zip(
                batches, await asyncio.gather(*(behind.receive(*batch) for batch in batches)), strict=True
            ):
                for held, outcome in zip(batch, outcomes, strict=True):
                    if isinstance(outcome, Acknowledged):
                        answers.setdefault(held.fence.event_id, set()).add(outcome.receipt)
                    else:
                        assert codes([outcome]) == ["revision_gap"]
        assert behind.effects(*everything) == ["apply@1"] * len(everything)
    assert all(len(receipts) == 1 for receipts in answers.values())
    for name in names:
        assert revision(kernel, name) == 8
        assert all(not is_open for _, _, is_open in gaps(kernel, name))
