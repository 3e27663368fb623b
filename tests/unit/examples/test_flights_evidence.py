"""The judgement, on facts made up for it: each thing that can go wrong moves its own figure and no other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from examples.flights.evidence import judge
from examples.flights.expected import Expected
from examples.flights.facts import Facts, Proof, ReceiptFacts, compare_receipts
from examples.flights.tables import Mileage, Punctuality, Tables
from tests.kit.builders import new_event_id

TABLES = Tables({"UA": Punctuality(2, 1, 30, 1)}, {"N1": Mileage(2, 300)})
EXPECTED = Expected(completed=2, cancelled=1, tables=TABLES)
RIGHT = Facts(
    completed=2,
    cancelled=1,
    flights=3,
    flights_untold=0,
    taken_back_seen=0,
    taken_back=0,
    deliveries=5,
    starts=7,
    acknowledged=5,
    quarantined=0,
    unfinished=0,
    receipts={"punctuality": ReceiptFacts(receipts=3), "mileage": ReceiptFacts(receipts=2)},
    tables=TABLES,
)
MOMENT = datetime(2013, 1, 31, tzinfo=UTC)


def figures(facts: Facts) -> tuple[int, int, int]:
    """Lost, doubled, stale."""
    evidence = judge(facts, EXPECTED, kills=10)
    assert evidence.holds is not any((evidence.lost, evidence.effects_doubled, evidence.stale_settles_accepted))
    return evidence.lost, evidence.effects_doubled, evidence.stale_settles_accepted


def test_a_right_run_has_zeros() -> None:
    """When the facts are what the file says, nothing is lost, doubled or stale, and the line says so."""
    evidence = judge(RIGHT, EXPECTED, kills=12)
    assert evidence.holds
    assert evidence.findings == ()
    assert evidence.line() == (
        "evidence: events=3 deliveries=5 acknowledged=5 quarantined=0 lost=0 effects_doubled=0"
        " stale_settles_accepted=0 kills=12 redeliveries=2"
    )


def test_a_counter_one_too_high_is_a_doubled_effect() -> None:
    """One flight counted twice is one doubled effect, and nothing is lost."""
    tables = replace(TABLES, punctuality={"UA": Punctuality(3, 1, 30, 1)})
    assert figures(replace(RIGHT, tables=tables)) == (0, 1, 0)


def test_a_counter_one_too_low_is_a_lost_effect() -> None:
    """One flight not counted is one lost effect, and nothing is doubled."""
    tables = replace(TABLES, mileage={"N1": Mileage(1, 300)})
    assert figures(replace(RIGHT, tables=tables)) == (1, 0, 0)


def test_a_row_that_is_missing_is_lost_and_a_row_too_many_is_doubled() -> None:
    """A loss at one aircraft never balances a surplus at another."""
    tables = replace(TABLES, mileage={"N2": Mileage(2, 300)})
    assert figures(replace(RIGHT, tables=tables)) == (2, 2, 0)


def test_a_wrong_sum_fails_although_every_count_is_right() -> None:
    """Two mistakes that cancel each other out in the counts still show in the sums, and the demo fails."""
    tables = replace(TABLES, punctuality={"UA": Punctuality(2, 1, 31, 1)})
    evidence = judge(replace(RIGHT, tables=tables), EXPECTED, kills=10)
    assert (evidence.lost, evidence.effects_doubled, evidence.cells_differing) == (0, 0, 1)
    assert not evidence.holds
    assert evidence.findings == ("punctuality of UA: delay_minutes is 31, the file says 30",)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (replace(RIGHT, unfinished=1, acknowledged=4), (1, 0, 0)),
        (replace(RIGHT, flights_untold=1), (1, 0, 0)),
        (replace(RIGHT, flights=2, completed=1, deliveries=3), (4, 0, 0)),
        (replace(RIGHT, taken_back_seen=1), (0, 1, 0)),
        (replace(RIGHT, completed=3, deliveries=7), (0, 3, 0)),
        (replace(RIGHT, receipts={"mileage": ReceiptFacts(receipts=2, without_receipt=1)}), (1, 0, 0)),
        (replace(RIGHT, receipts={"mileage": ReceiptFacts(receipts=3, several=1)}), (0, 1, 0)),
        (replace(RIGHT, receipts={"mileage": ReceiptFacts(receipts=3, unasked=1)}), (0, 1, 0)),
        (replace(RIGHT, stale={"an attempt has more than one finish": 1}), (0, 0, 1)),
        (replace(RIGHT, defects=("delivery in 2 places",)), (0, 0, 1)),
    ],
)
def test_each_wrong_fact_moves_its_own_figure(facts: Facts, expected: tuple[int, int, int]) -> None:
    """Whatever is missing is lost, whatever is too much is doubled, whatever broke the fence is stale."""
    assert figures(facts) == expected


def test_receipts_are_held_against_acknowledgements() -> None:
    """Missing, different, repeated and unasked receipts are told apart, and so is one that a later attempt found."""
    right, met, other, missing, unasked = (new_event_id() for _ in range(5))
    proof = Proof("receipt", b"digest", MOMENT)
    found = compare_receipts(
        dict.fromkeys((right, met, other, missing), proof),
        [
            (right, replace(proof, at=MOMENT + timedelta(seconds=1))),
            (right, replace(proof, at=MOMENT + timedelta(seconds=1))),
            (met, replace(proof, at=MOMENT - timedelta(seconds=1))),
            (other, replace(proof, digest=b"another")),
            (unasked, proof),
        ],
    )
    assert found == ReceiptFacts(receipts=5, without_receipt=2, several=1, unasked=1, met_by_receipt=1)
