"""In whatever order the events of an attempt arrive, and whenever the workers run, the lanes end alike."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations

import pytest

from tests.kit.database import TestDatabase
from tests.kit.oceanway.metering import Metering, running_metering
from tests.kit.oceanway.metering_facts import COST, USAGE, Attempt, Told

END = ("applied", "availability_processed")


@pytest.fixture(scope="module")
def metering(metering_database: TestDatabase) -> Iterator[Metering]:
    """Give one metering to all tests here; every test has attempts of its own."""
    with running_metering(metering_database) as bench:
        yield bench


def five_events(attempt: Attempt) -> list[Told]:
    """Eligibility, two revisions of usage and two of cost."""
    return [
        attempt.end(),
        attempt.report(USAGE, "tokens", "pending"),
        attempt.report(USAGE, "tokens", "available", "7"),
        attempt.report(COST, "spend", "not_reported"),
        attempt.report(COST, "spend", "available", "1.5"),
    ]


def final_state(metering: Metering, attempt: Attempt) -> tuple[object, ...]:
    """What is left of an attempt's history, without the history."""
    lane, cost = metering.lane(attempt), metering.lane(attempt, "spend")
    [current] = metering.current(attempt)
    facts = metering.documents("provider_cost_fact", attempt)
    return (
        (lane["state"], cost["state"]),
        current["quantity"],
        [(fact["amount"], fact["currency"]) for fact in facts],
        metering.watermarks(attempt),
    )


EXPECTED = (
    END,
    "7",
    [("1.5", "EUR")],
    [("execution_eligibility", "", 1), ("provider_cost", "spend", 2), ("provider_usage", "tokens", 2)],
)


@pytest.mark.req("MTR-02", "MTR-03", "MTR-04", "MTR-05", "MTR-09", "TST-17", "AMB-36", "AMB-46")
@pytest.mark.parametrize("pace", ["never", "always", "sometimes"])
def test_every_order_of_five_events_ends_alike(metering: Metering, pace: str) -> None:
    """All 120 orders at once, with the workers idle in between, running after every event, or now and then."""
    seed = random.randrange(1_000_000)
    print(f"seed={seed}")  # noqa: T201 - to repeat a failure
    chance = {"never": 0.0, "always": 1.0, "sometimes": 0.5}[pace]
    order_of: list[tuple[Attempt, list[Told]]] = []
    for order in permutations(range(5)):
        attempt = metering.new_attempt()
        told = five_events(attempt)
        order_of.append((attempt, [told[at] for at in order]))
    dice = random.Random(seed)
    for position in range(5):
        metering.accept(*(told[position] for _, told in order_of))
        if dice.random() < chance:
            metering.work()
    metering.work_until_idle()
    for attempt, told in order_of:
        assert final_state(metering, attempt) == EXPECTED, [one.event_id for one in told]
    metering.check()


@pytest.mark.req("MTR-02", "TST-17", "TST-19", "AMB-36", "APP-25")
def test_a_long_history_of_revisions_in_random_order_ends_at_the_newest(metering: Metering) -> None:
    """Two charges from two usages and ten revisions of each, shuffled, with workers in between."""
    seed = random.randrange(1_000_000)
    print(f"seed={seed}")  # noqa: T201 - to repeat a failure
    dice = random.Random(seed)
    attempts = [metering.new_attempt(charges={"a": "one", "b": "two"}) for _ in range(20)]
    histories: list[list[Told]] = []
    for attempt in attempts:
        told = [attempt.end()]
        for revision in range(1, 11):
            told.extend(attempt.report(USAGE, key, "available", str(revision)) for key in ("one", "two"))
        dice.shuffle(told)
        histories.append(told)
    for position in range(21):
        metering.accept(*(told[position] for told in histories))
        if dice.random() < 0.4:
            metering.work()
    metering.work_until_idle()
    for attempt in attempts:
        assert metering.lane(attempt)["state"] == "applied"
        assert [one["quantity"] for one in metering.current(attempt)] == ["10", "10"]
    metering.check()


@pytest.mark.req("RCP-33", "MTR-08", "RCP-22", "RCP-14")
def test_a_redelivery_gets_the_first_receipt_byte_for_byte_whatever_happened_since(metering: Metering) -> None:
    """Also the receipt of an old revision keeps the lane as it was then."""
    attempt = metering.new_attempt()
    told = five_events(attempt)
    late = told.pop(1)
    first = {one.event_id: metering.consumer.accept(one) for one in told}
    metering.work_until_idle()
    first[late.event_id] = metering.consumer.accept(late)
    newest = attempt.report(USAGE, "tokens", "available", "9")
    metering.accept(newest)
    metering.work_until_idle()
    for one in (*told, late):
        assert metering.consumer.accept(one) == first[one.event_id]
    observed = metering.receipt(late)
    assert observed["outcome"] == "already_observed"
    assert observed["lane"]["coordinationState"]["state"] == "applied"
    assert observed["lane"]["coordinationState"]["settlementInputSnapshotCount"] == 1
    metering.check()
