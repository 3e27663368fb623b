"""The projector on a real database: what each event leaves, and that no order of arrival changes the end."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any
from uuid import uuid4

import pytest
from psycopg import Connection

from oceanway.contracts.receipts.operations import OperationsProjectionAppliedReceipt
from seapost.contracts.canonical import encode
from seapost.contracts.envelope import new_event_id
from seapost.testing.databases import TestDatabase
from tests.kit.oceanway.operations import Life, Told
from tests.kit.oceanway.operations_cases import BillingPeer
from tests.kit.oceanway.operations_consumer import Consumer, projecting, shown
from tests.kit.oceanway.operations_direct import Direct

SEEDS = (11, 12, 13, 14)
CHAIN_READ = "readLateSettlementExposureChainForOperations"


@pytest.fixture(scope="module")
def billing() -> BillingPeer:
    """Give billing as a peer in memory."""
    return BillingPeer()


@pytest.fixture(scope="module")
def projector(core_database: TestDatabase, billing: BillingPeer) -> Iterator[Consumer]:
    """Give the projector, running."""
    with projecting(core_database, billing) as consumer:
        yield consumer


@pytest.fixture
def connection(core_database: TestDatabase) -> Iterator[Connection[Any]]:
    """Give an onlooker."""
    with core_database.connect(autocommit=True) as session:
        yield session


@pytest.fixture
def life(billing: BillingPeer) -> Life:
    """Give a run of this test."""
    life = Life()
    billing.know(life)
    return life


def count(connection: Connection[Any], table: str, run_id: str) -> int:
    """Rows of one table about a run."""
    return len(shown(connection, run_id)[table])


@pytest.mark.req("OPS-13")
def test_a_run_without_its_wallet_shows_no_reservation(
    projector: Consumer, connection: Connection[Any], life: Life
) -> None:
    """The reservation fields stay missing until the wallet event is there, then they are all there."""
    projector.accept(life.run_created())
    (summary,) = shown(connection, life.run_id)["operation_summary"]
    assert {summary[name] for name in ("reserved_amount", "currency", "wallet_event_id")} == {None}
    wallet = life.wallet_reserved()
    projector.accept(wallet)
    (summary,) = shown(connection, life.run_id)["operation_summary"]
    assert (summary["reserved_amount"], summary["wallet_event_id"]) == (10, str(wallet.event_id))


@pytest.mark.req("OPS-14", "NEG-34", "ORD-03")
def test_a_wallet_without_its_run_makes_nothing_but_a_waiting_row(
    projector: Consumer, connection: Connection[Any], life: Life
) -> None:
    """It is acknowledged and waits; no summary, timeline, identity or index comes from it; the run event links it."""
    projector.accept(life.wallet_reserved())
    rows = shown(connection, life.run_id)
    assert [name for name, found in rows.items() if found] == ["pending_unlinked_reservations"]
    projector.accept(life.run_created())
    rows = shown(connection, life.run_id)
    assert not rows["pending_unlinked_reservations"]
    assert rows["operation_summary"][0]["reserved_amount"] == 10
    assert len(rows["timeline_entry"]) == 2


@pytest.mark.req("OPS-14", "TST-05")
@pytest.mark.parametrize("first", ["run", "wallet"])
@pytest.mark.parametrize("wrong", ["cause", "tenant_id", "billing_account_id", "billing_reservation_id"])
def test_a_run_and_a_wallet_that_disagree_are_refused_by_whichever_comes_second(
    projector: Consumer, connection: Connection[Any], life: Life, first: str, wrong: str
) -> None:
    """Another cause, tenant, account or reservation: `identity_conflict` for good, and the first one's rows stay."""
    if wrong == "cause":
        wallet = life.wallet_reserved(cause=new_event_id())
    else:
        changes: dict[str, Any] = {wrong: f"other-{uuid4().hex}"}
        wallet = life.wallet_reserved(**changes)
    one, two = (life.run_created(), wallet) if first == "run" else (wallet, life.run_created())
    projector.accept(one)
    before = shown(connection, life.run_id)
    assert projector.code(two) == "identity_conflict!"
    assert shown(connection, life.run_id) == before


def whole_life(life: Life) -> list[Told]:
    """Run, wallet, finalization, an adjustment, an exposure that is charged, a correction, one that is resolved."""
    return [
        life.run_created(),
        life.wallet_reserved(),
        life.finalize("7"),
        life.adjust("-1"),
        *life.open_exposure("3"),
        *life.close("charge"),
        life.adjust("1"),
        *life.open_exposure("2"),
        life.adjust("0"),
        *life.resolve("2"),
    ]


@pytest.mark.req("CASE-26", "CASE-27", "CASE-31", "AMB-50", "TST-07", "ORD-03")
def test_a_life_in_any_order_ends_in_the_same_rows(connection: Connection[Any], billing: BillingPeer) -> None:
    """Events of one dimension wait for each other, all others are applied as they come; the end is always one."""
    for seed in SEEDS:
        generator = random.Random(seed)
        life = Life()
        billing.know(life)
        events = whole_life(life)
        orders = [events, events[::-1], *(generator.sample(events, len(events)) for _ in range(6))]
        ends = [end_of(connection, billing, life, order) for order in orders]
        assert all(end == ends[0] for end in ends), f"seed {seed}"
        assert [row["state"] for row in ends[0]["late_case"]] == ["resolved", "resolved"]
        (dimension,) = ends[0]["settlement_dimension"]
        assert (dimension["finalized_amount"], dimension["adjusted_amount"], dimension["state_revision"]) == (7, 5, 7)


@pytest.mark.req("TST-07", "CASE-26", "CASE-29")
def test_an_exposure_and_its_late_result_converge_from_every_order(
    connection: Connection[Any], billing: BillingPeer
) -> None:
    """All 120 orders of finalization, opening, request, late result and resolution, and a correction after them."""
    life = Life()
    billing.know(life)
    opening = life.finalize(), *life.open_exposure("3"), *life.close("waive")
    correction = life.adjust("-2")
    ends = [end_of(connection, billing, life, [*order, correction]) for order in permutations(opening)]
    assert all(end == ends[0] for end in ends)
    assert ends[0]["late_case"][0]["state"] == "resolved"
    assert ends[0]["settlement_dimension"][0]["waived_amount"] == 3


def end_of(connection: Connection[Any], billing: BillingPeer, life: Life, events: list[Told]) -> dict[str, Any]:
    """What a projection version of its own holds after these events."""
    version = f"order-{uuid4().hex}"
    Direct(connection, billing, version).fold(events)
    return shown(connection, life.run_id, version)


@pytest.mark.req("OPS-11", "AMB-17", "NEG-34", "NEG-46")
def test_a_step_before_its_predecessor_waits_and_heals(
    projector: Consumer, connection: Connection[Any], life: Life
) -> None:
    """The gap is recorded, no receipt and no row of the projection is written; once filled, it is applied."""
    projector.accept(life.finalize())
    first, second = life.adjust("1"), life.adjust("2")
    before = shown(connection, life.run_id)
    assert projector.code(second) == "revision_gap"
    assert shown(connection, life.run_id) == before
    gaps = "select count(*) from seapost.projection_gaps where aggregate_id = %s and resolved_at is null"
    assert connection.execute(gaps, (life.dimension,)).fetchone() == (1,)
    projector.accept(first, second)
    assert connection.execute(gaps, (life.dimension,)).fetchone() == (0,)
    assert shown(connection, life.run_id)["settlement_dimension"][0]["adjusted_amount"] == 3


@pytest.mark.req("CASE-31", "TST-05", "AMB-50")
def test_a_first_step_with_another_cause_than_the_finalization_is_refused(
    projector: Consumer, connection: Connection[Any], life: Life, billing: BillingPeer
) -> None:
    """Whichever of the two comes second is refused."""
    projector.accept(life.finalize())
    assert projector.code(life.adjust("1", cause=new_event_id())) == "identity_conflict!"
    assert not count(connection, "dimension_revision", life.run_id)
    other = Life()
    billing.know(other)
    projector.accept(other.adjust("1", cause=new_event_id()))
    assert projector.code(other.finalize()) == "identity_conflict!"
    assert not count(connection, "finalization", other.run_id)


@pytest.mark.req("CASE-31", "TST-05")
def test_a_later_step_must_name_its_direct_predecessor(
    projector: Consumer, connection: Connection[Any], life: Life
) -> None:
    """The finalization, or an older step, is not the cause of a second step."""
    projector.accept(life.finalize(), life.adjust("1"))
    assert projector.code(life.adjust("1", cause=life.finalization_event_id)) == "identity_conflict!"
    assert count(connection, "dimension_revision", life.run_id) == 1


@pytest.mark.req("CASE-28", "TST-04", "NEG-33")
def test_a_payload_without_its_step_is_refused(projector: Consumer, life: Life) -> None:
    """Nothing is looked up from the attempt or a neighbouring event."""
    step = life.adjust("1")
    document = json.loads(step.envelope)
    del document["payload"]["runStepId"]
    damaged = replace(step, envelope=encode(document))
    assert projector.code(damaged) == "schema_invalid!"


@pytest.mark.req("CASE-32", "CASE-33")
def test_a_validation_operation_of_another_step_is_refused(projector: Consumer, life: Life) -> None:
    """It follows from the revision and the basis of the very step."""
    projector.accept(life.finalize(), life.adjust("1"))
    step = life.adjust("1")
    document = json.loads(step.envelope)
    document["payload"]["validationOperationId"] = "settlement_transition_" + "0" * 64
    assert projector.code(replace(step, envelope=encode(document))) == "schema_invalid!"


@pytest.mark.req("CASE-29", "CASE-30", "TST-06", "NEG-46")
@pytest.mark.parametrize("trouble", ["down", "blind"])
def test_an_unreadable_chain_leaves_nothing_and_is_tried_again(
    projector: Consumer, connection: Connection[Any], life: Life, billing: BillingPeer, trouble: str
) -> None:
    """No pending state, no receipt; with the owner back, the resolution waits as `pending_resolution`."""
    request, (_, resolution) = life.open_exposure("3"), life.close()
    before = shown(connection, life.run_id)
    try:
        billing.down = trouble == "down"
        billing.blind = {CHAIN_READ} if trouble == "blind" else set()
        assert projector.code(resolution) == "owner_unreadable"
    finally:
        billing.down, billing.blind = False, set()
    assert shown(connection, life.run_id) == before
    receipts = "select count(*) from seapost.inbox_receipts where event_id = %s"
    assert connection.execute(receipts, (resolution.event_id,)).fetchone() == (0,)
    projector.accept(resolution)
    assert shown(connection, life.run_id)["late_case"][0]["state"] == "pending_resolution"
    projector.accept(*request)
    assert shown(connection, life.run_id)["late_case"][0]["state"] == "pending_resolution"


@pytest.mark.req("CASE-29", "CASE-30")
def test_a_chain_that_does_not_lead_to_the_resolution_is_refused(
    projector: Consumer, connection: Connection[Any], life: Life, billing: BillingPeer
) -> None:
    """The owner contradicts itself, or the chain ends in another fact: for good, and nothing is written."""
    life.open_exposure("3")
    _, resolution = life.close()
    honest = life.chain[2]
    life.chain[2] = honest.model_copy(update={"exposure": life.chain[1].exposure})
    assert projector.code(resolution) == "identity_conflict!"
    life.chain[2] = honest
    billing.lying = {CHAIN_READ}
    try:
        assert projector.code(resolution) == "identity_conflict!"
    finally:
        billing.lying = set()
    assert not count(connection, "late_case", life.run_id)
    projector.accept(resolution)


@pytest.mark.req("OPS-10", "NEG-34", "NEG-47", "RCP-03", "RCP-11", "OPS-09")
def test_a_redelivery_gets_the_first_receipt_and_other_bytes_are_refused(
    projector: Consumer, connection: Connection[Any], life: Life
) -> None:
    """Byte for byte the same receipt; the same event identifier with another digest is refused for good."""
    run = life.run_created()
    (first,) = projector.accept(run)
    before = shown(connection, life.run_id)
    assert projector.accept(run, run) == [first, first]
    assert projector.code(life.run_created(run_step_ids=["step-9"])) == "digest_conflict!"
    assert shown(connection, life.run_id) == before


@pytest.mark.req("RCP-01", "RCP-02")
def test_a_receipt_names_event_projection_and_digest_and_covers_all_but_ref_and_time(
    projector: Consumer, life: Life
) -> None:
    """Its digest is that of everything else."""
    run = life.run_created()
    receipt = OperationsProjectionAppliedReceipt.decode(projector.accept(run)[0])
    assert (receipt.event_id, receipt.event_type) == (str(run.event_id), "run.created@2.0")
    assert (receipt.projection_name, receipt.projection_version) == ("operations", "1")
    outside = set(receipt.to_json()) - set(receipt.candidate())
    prefix = "operationsProjectionAppliedReceipt"
    assert outside == {f"{prefix}Ref", f"{prefix}Digest", "appliedAt"}


@pytest.mark.req("AMB-39", "OPS-18")
def test_envelopes_of_other_producers_are_kept_and_those_of_the_core_are_not(
    projector: Consumer, connection: Connection[Any], life: Life
) -> None:
    """The core's own are in the outbox beside; billing's are received evidence, byte for byte."""
    run, finalization = life.run_created(), life.finalize()
    projector.accept(run, finalization)
    rows = connection.execute(
        "select event_id, envelope from operations.accepted_events where event_id = any (%s)",
        ([run.event_id, finalization.event_id],),
    ).fetchall()
    assert rows == [(finalization.event_id, finalization.envelope)]
