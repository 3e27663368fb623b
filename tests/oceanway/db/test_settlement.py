"""A reservation after its finalization: every newer input is settled in the end, in whatever order it arrives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from oceanway.billing import store_settlement as store
from oceanway.billing.store_settlement import Advance
from oceanway.contracts.errors import InvalidArgument, Stale
from seapost.model.outcome import Acknowledged, NonRetryable, Retryable
from tests.kit.oceanway.billing_settlement import Billing, running_billing

if TYPE_CHECKING:
    from seapost.testing.databases import TestDatabase
    from tests.kit.oceanway.billing_settlement_facts import Run

TRANSITION = "billing.settlement-transition.committed@1"
FINALIZED = "billing.finalization.committed@1"


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give billing over a database of this module."""
    with running_billing(billing_database) as running:
        yield running


def outcome_of(receipt: bytes) -> dict[str, Any]:
    """What a receipt says happened."""
    return json.loads(receipt)["outcome"]


def finalized(billing: Billing, quantity: str = "3", **options: str) -> Run:
    """A run whose first input is settled and caught up."""
    run = billing.new_run(**options)
    billing.accept(run.measure(quantity))
    billing.finalize(run)
    billing.work()
    billing.require_settled(run)
    return run


@pytest.mark.req("TST-15", "CAT-05", "CAT-19", "CAT-20", "APP-08", "RCP-51")
def test_an_input_after_the_finalization_is_booked_and_verified(billing: Billing) -> None:
    """S1 is finalized, S2 comes later: a transition books the difference, its successor verifies it."""
    run = finalized(billing)
    assert billing.available(run) == Decimal(97)
    (receipt,) = billing.accept(run.measure("5"))
    fence = billing.catch_up(run)
    work = json.loads(
        bytes(
            billing.row(
                "select document from billing.catch_up_work where billing_settlement_catch_up_work_ref = %s",
                fence["active_work_ref"],
            )["document"]
        )
    )
    said = outcome_of(receipt)["durability"]
    assert said["state"] == "settlement_catch_up_scheduled"
    assert said["settlementCatchUpFenceRevision"] == fence["fence_revision"]
    for name in ("Ref", "SchemaVersion", "DigestAlgorithmVersion", "Digest"):
        assert said[f"billingSettlementCatchUpWork{name}"] == work[f"billingSettlementCatchUpWork{name}"]
    assert said["billingCatchUpValidationOperationId"] == work["billingCatchUpValidationOperationId"]
    billing.work()
    billing.require_settled(run)
    assert billing.available(run) == Decimal(95)
    assert [name for name, _ in billing.events(run)] == [FINALIZED, TRANSITION]


@pytest.mark.req("TST-14", "TST-19", "CAT-03", "RCP-50", "AMB-46")
def test_every_input_before_the_finalization_makes_the_next_generation(billing: Billing) -> None:
    """Before the finalization an input makes a finalization work, and only the newest input is settled."""
    run = billing.new_run()
    generations = [
        outcome_of(billing.accept(run.measure(quantity))[0])["durability"]["workGeneration"]
        for quantity in ("1", "2", "4")
    ]
    assert generations == [2, 3, 4]
    assert billing.catch_up(run)["state"] == "awaiting_finalization"
    billing.finalize(run)
    billing.work()
    billing.require_settled(run)
    assert billing.available(run) == Decimal(96)


@pytest.mark.req("CAT-08", "AMB-28", "TST-21")
def test_a_dimension_that_only_a_watermark_knows_is_opened_and_settled_too(billing: Billing) -> None:
    """The finalization opens every dimension of the reservation, also one that it did not settle."""
    run = billing.new_run(keys=("tokens",))
    billing.accept(run.measure("3"), run.measure("2", "extra"))
    billing.finalize(run)
    assert billing.dimension(run, "extra")["last_evaluated"] == {"state": "none"}
    assert billing.catch_up(run, "extra")["state"] == "pending_verification"
    billing.work()
    billing.require_settled(run)
    billing.require_settled(run, "extra")
    assert billing.available(run) == Decimal(95)


@pytest.mark.req("CAT-08", "CAT-05")
def test_a_dimension_that_is_first_seen_after_the_finalization_is_created(billing: Billing) -> None:
    """No row exists yet: the event creates fence and state, caused by the finalization."""
    run = finalized(billing)
    billing.accept(run.measure("2", "extra"))
    billing.work()
    billing.require_settled(run, "extra")
    ((_, finalization), (_, transition)) = billing.events(run)
    assert transition["correlation"]["causationId"] == finalization["eventId"]


@pytest.mark.req("TST-14", "TST-15", "TST-17", "TST-19", "TST-20", "TST-21", "AMB-36", "AMB-28")
@pytest.mark.parametrize("order", [*permutations("12FW"), *list(permutations("123FW"))[::8]], ids="".join)
def test_every_order_of_events_finalization_and_work_ends_with_the_newest_input(
    billing: Billing, order: tuple[str, ...]
) -> None:
    """The inputs, the closing and a worker's step in any order: billing reaches the newest without another event."""
    run = billing.new_run()
    quantities = {"1": "3", "2": "7", "3": "5"}
    told = {name: run.measure(quantities[name]) for name in sorted(set(order) & quantities.keys())}
    for step in order:
        match step:
            case "F":
                billing.close(run)
                billing.finalize_known()
            case "W":
                _ = billing.catcher.step(50)
            case _:
                (outcome,) = billing.inputs.deliver(told[step])
                assert isinstance(outcome, Acknowledged)
        billing.finalize_known()
    billing.work()
    billing.require_settled(run)


@pytest.mark.req("TST-17", "RCP-55", "CAT-02")
def test_an_older_input_is_observed_already_and_changes_nothing(billing: Billing) -> None:
    """The receipt says which input was the highest at that time, and keeps saying so."""
    run = billing.new_run()
    first, second = run.measure("3"), run.measure("7")
    billing.accept(second)
    before = billing.fence(run)["latest_work_generation"]
    (receipt,) = billing.accept(first)
    said = outcome_of(receipt)
    assert said["kind"] == "already_observed"
    highest = said["highestObservedSettlementInput"]
    assert highest["settlementInputSnapshotRef"] == run.snapshots["tokens"][1].settlement_input_snapshot_ref
    assert billing.fence(run)["latest_work_generation"] == before
    billing.accept(run.measure("8"))
    assert billing.accept(first) == [receipt]


@pytest.mark.req("TST-16", "TST-12", "CAT-11", "CAT-09", "RCP-55", "AMB-46")
def test_a_redelivery_returns_the_first_receipt_and_makes_no_second_work(billing: Billing) -> None:
    """The response was lost after the commit: the same bytes again, before and after the finalization."""
    run = billing.new_run()
    first = run.measure("3")
    receipt = billing.accept(first)
    assert billing.accept(first) == receipt
    billing.finalize(run)
    second = run.measure("4")
    late = billing.accept(second)
    works = "select count(*) from billing.catch_up_work where settlement_dimension_id = %s"
    count = billing.row(works, run.dimension())["count"]
    assert billing.accept(second) == late
    assert billing.row(works, run.dimension())["count"] == count
    billing.work()
    assert billing.accept(second) == late
    assert billing.accept(first) == receipt


@pytest.mark.req("TST-18", "CAT-10", "RCP-54", "AMB-36", "NEG-47")
@pytest.mark.parametrize("phase", ["open", "finalized"])
def test_another_input_of_one_revision_is_rejected_for_good(billing: Billing, phase: str) -> None:
    """The same state version with another digest, and a predecessor that was never accepted, go to quarantine."""
    run = finalized(billing) if phase == "finalized" else billing.new_run()
    if phase == "open":
        billing.accept(run.measure("3"))
    first = run.snapshots["tokens"][0]
    other = run.snapshot("tokens", "9", None, salt="other")
    follower = run.snapshot("tokens", "9", other)
    for snapshot in (other, follower):
        (outcome,) = billing.inputs.deliver(run.event_of(snapshot))
        assert isinstance(outcome, NonRetryable)
        assert outcome.code == "digest_conflict"
    watermark = billing.row(
        "select * from billing.settlement_inbox where settlement_dimension_id = %s", run.dimension()
    )
    assert watermark["settlement_input_snapshot_ref"] == first.settlement_input_snapshot_ref
    assert watermark["inbox_revision"] == 1


@pytest.mark.req("RCP-54", "CASE-28", "NEG-33", "TST-04")
def test_an_event_that_rebinds_the_reservation_or_the_price_is_rejected(billing: Billing) -> None:
    """Another account, run, tenant, price or currency for one dimension is another identity."""
    run = billing.new_run()
    billing.accept(run.measure("3"))
    follower = run.snapshot("tokens", "9", run.snapshots["tokens"][0])
    for changes in (
        {"billing_account_id": "another"},
        {"run_id": "another"},
        {"tenant_id": "another"},
        {"project_id": "another"},
        {"settlement_economic_identity": run.economic("tokens", price_book_version="2")},
        {"settlement_economic_identity": run.economic("tokens", currency="USD")},
    ):
        (outcome,) = billing.inputs.deliver(run.event_of(follower, **changes))
        assert isinstance(outcome, NonRetryable)
        assert outcome.code == "identity_conflict"


@pytest.mark.req("CAT-07", "AMB-07", "AMB-17", "REF-45", "NEG-46", "RCP-55")
def test_an_input_before_its_reservation_leaves_its_watermark_and_no_receipt(billing: Billing) -> None:
    """Retried until the reservation is bound; then the watermark is not moved again, and the receipt decides now."""
    run = billing.unbound_run()
    first = run.measure("3")
    for _ in range(2):
        (outcome,) = billing.inputs.deliver(first)
        assert isinstance(outcome, Retryable)
        assert outcome.code == "fence_unbindable"
    query = "select inbox_revision from billing.settlement_inbox where settlement_dimension_id = %s"
    assert billing.row(query, run.dimension())["inbox_revision"] == 1
    receipts = "select count(*) from seapost.inbox_receipt where event_id = %s"
    assert billing.row(receipts, first.event_id)["count"] == 0
    billing.admit(run)
    (receipt,) = billing.accept(first)
    said = outcome_of(receipt)
    assert (said["kind"], said["inboxRevision"]) == ("watermark_advanced", 1)
    assert said["durability"]["state"] == "finalization_work_scheduled"
    billing.finalize(run)
    billing.work()
    billing.require_settled(run)


@pytest.mark.req("CAT-19", "CAT-22", "TST-12")
def test_an_input_that_costs_the_same_is_evaluated_without_a_transition(billing: Billing) -> None:
    """The Finish says `already_evaluated` and freezes the successor; no event, no booking, no revision."""
    run = finalized(billing)
    billing.accept(run.measure("3"))
    billing.work()
    billing.require_settled(run)
    assert [name for name, _ in billing.events(run)] == [FINALIZED]
    assert billing.dimension(run)["state_revision"] == 0
    finishes = billing.rows(
        "select f.outcome from billing.catch_up_work_finish as f"
        " join billing.catch_up_work as w using (billing_settlement_catch_up_work_ref)"
        " where w.settlement_dimension_id = %s order by w.work_generation",
        run.dimension(),
    )
    assert [row["outcome"] for row in finishes] == ["caught_up", "already_evaluated", "caught_up"]


@pytest.mark.req("CAT-12", "CAT-13", "CAT-15", "CAT-16", "AMB-30", "AMB-45")
def test_an_owner_conflict_blocks_the_work_and_the_same_work_goes_on_later(billing: Billing) -> None:
    """Conflict fact, Blocked and fence together; no Finish, no case; the same operation ends when metering is sound."""
    run = finalized(billing)
    billing.accept(run.measure("5"))
    billing.peers.conflicting.add(run.dimension())
    active = billing.catch_up(run)["active_work_ref"]
    for attempt in (1, 2):
        assert billing.catcher.step(1) == 1
        fence = billing.catch_up(run)
        assert (fence["state"], fence["active_work_ref"]) == ("blocked_on_owner_conflict", active)
        assert (fence["lease_owner"], fence["attempt_number"], fence["retry_count"]) == (None, attempt, attempt)
    blocked = billing.rows(
        "select document from billing.catch_up_work_blocked where billing_settlement_catch_up_work_ref = %s", active
    )
    assert len(blocked) == 2
    query = "select count(*) from billing.catch_up_work_finish where billing_settlement_catch_up_work_ref = %s"
    assert billing.row(query, active)["count"] == 0
    conflicts = "select count(*) from billing.settlement_input_conflict where settlement_dimension_id = %s"
    assert billing.row(conflicts, run.dimension())["count"] == 1
    billing.peers.conflicting.clear()
    billing.work()
    billing.require_settled(run)
    assert billing.row(query, active)["count"] == 1


@pytest.mark.req("TST-06", "NEG-46", "AMB-45")
def test_an_owner_that_cannot_be_asked_leaves_the_work_as_it_is(billing: Billing) -> None:
    """No Conflict, no Blocked, no Finish; the same work later."""
    run = finalized(billing)
    billing.accept(run.measure("5"))
    billing.peers.unreadable = True
    active = billing.catch_up(run)["active_work_ref"]
    assert billing.catcher.step(1) == 1
    billing.peers.unreadable = False
    fence = billing.catch_up(run)
    assert (fence["state"], fence["active_work_ref"], fence["retry_count"]) == ("pending_verification", active, 1)
    billing.work()
    billing.require_settled(run)


@pytest.mark.req("CAT-20", "TST-20")
def test_an_input_that_is_not_current_any_more_waits_for_its_event(billing: Billing) -> None:
    """Metering has S3, billing was told of S2: nothing is booked for S2, and S3's event ends it."""
    run = finalized(billing)
    second, third = run.measure("5"), run.measure("6")
    billing.accept(second)
    assert billing.catcher.step(1) == 1
    assert billing.dimension(run)["state_revision"] == 0
    billing.accept(third)
    billing.work()
    billing.require_settled(run)
    assert len(billing.events(run)) == 2


@pytest.mark.req("NEG-25", "RCP-50", "RCP-51", "RCP-52", "CAT-08")
@pytest.mark.parametrize(
    ("is_finalized", "wrong"),
    [(False, ("catch_up", "held", "unbound")), (True, ("finalization", "held", "unbound"))],
)
def test_the_phase_alone_decides_what_an_input_may_order(
    billing: Billing, *, is_finalized: bool, wrong: tuple[str, ...]
) -> None:
    """A decision for another phase is refused by the database, and the watermark stays where it is."""
    run = finalized(billing) if is_finalized else billing.new_run()
    if not is_finalized:
        billing.accept(run.measure("3"))
    payload = json.loads(run.measure("4").envelope)["payload"]
    for mode in wrong:
        with billing.pool.connection() as connection, pytest.raises(Stale):
            _ = store.advance(connection, Advance(payload, 1, mode))
    with billing.pool.connection() as connection, pytest.raises(InvalidArgument):
        _ = store.advance(connection, Advance(payload, 1, "unknown"))
    query = "select inbox_revision from billing.settlement_inbox where settlement_dimension_id = %s"
    assert billing.row(query, run.dimension())["inbox_revision"] == 1
