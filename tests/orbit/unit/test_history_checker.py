"""The history checker: a history in which all is right passes, and each broken twin is caught by its invariant."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, TypeVar

import pytest

from orbit.history.checker import check_history
from orbit.history.lease_checks import backoff
from orbit.history.operations import (
    DATABASE,
    Ack,
    Aged,
    AnyLine,
    Claim,
    Confirm,
    Create,
    DeliveryFact,
    Operation,
    ResultFact,
    StreamFact,
    SubscriptionFact,
    Switch,
    digest_of,
)
from orbit.history.reading import History
from orbit.history.verdict import PROMISES, VIOLATIONS_KEPT_MAX, Invariant
from orbit.model.states import DeliveryState, ResultType, SubscriptionStatus
from tests.kit.orbit.histories import at, clean_history

LineT = TypeVar("LineT", bound=AnyLine)
Lines = list[AnyLine]
Breaker = Callable[[Lines], Lines]


def change(lines: Lines, kind: type[Any], where: Callable[[Any], bool], **members: Any) -> Lines:
    """The lines with the first one of a kind for which `where` holds changed."""
    place = next(number for number, line in enumerate(lines) if isinstance(line, kind) and where(line))
    lines[place] = lines[place].model_copy(update=members)
    return lines


def drop(lines: Lines, kind: type[Any], where: Callable[[Any], bool]) -> Lines:
    """The lines without those of a kind for which `where` holds."""
    return [line for line in lines if not (isinstance(line, kind) and where(line))]


def _epoch(process: str, delivery: str, epoch: int) -> Callable[[Claim], bool]:
    return lambda claim: (
        (claim.process == DATABASE) == (process == DATABASE)
        and (claim.leased[0].delivery, claim.leased[0].epoch) == (delivery, epoch)
    )


def _leased(lines: Lines, where: Callable[[Claim], bool], **members: Any) -> Lines:
    """The lines with the one delivery of a claim changed."""
    claim = next(line for line in lines if isinstance(line, Claim) and where(line))
    return change(lines, Claim, where, leased=(claim.leased[0].model_copy(update=members),))


def _moved(lines: Lines, kind: type[Any], where: Callable[[Any], bool], seconds: float) -> Lines:
    """The lines with both views of an operation moved to another moment."""
    moment = at(seconds)
    return [
        line.model_copy(update={"begin": moment, "end": moment}) if isinstance(line, kind) and where(line) else line
        for line in lines
    ]


def _client(line: Operation) -> bool:
    return line.process != DATABASE


def _database(line: Operation) -> bool:
    return line.process == DATABASE


def _later_id(lines: Lines, kind: type[Any], where: Callable[[Any], bool], **members: Any) -> Lines:
    """The lines with one operation told a second time, under another id and with other words."""
    found: Any = next(line for line in lines if isinstance(line, kind) and where(line))
    return [*lines, found.model_copy(update={"id": f"{found.id}-again"} | members)]


BROKEN: Final[dict[str, tuple[Invariant, Breaker]]] = {
    "a hole in the sequences": (Invariant.H1, lambda lines: drop(lines, ResultFact, lambda row: row.sequence == 2)),
    "one sequence for two results": (
        Invariant.H1,
        lambda lines: change(lines, ResultFact, lambda row: row.sequence == 3, sequence=2),
    ),
    "one event in two rows": (
        Invariant.H1,
        lambda lines: change(lines, ResultFact, lambda row: row.sequence == 4, event="evt_3"),
    ),
    "a head that the journal does not reach": (
        Invariant.H1,
        lambda lines: change(lines, StreamFact, lambda _: True, last_sequence=5),
    ),
    "a receipt with another sequence than the journal's": (
        Invariant.H1,
        lambda lines: change(lines, Confirm, lambda each: _client(each) and each.sequence == 2, sequence=9),
    ),
    "a snapshot that changed after it was published": (
        Invariant.H1,
        lambda lines: _leased(lines, _epoch("client", "dlv_2", 1), snapshot=digest_of("something else")),
    ),
    "an event that was delivered under another type": (
        Invariant.H1,
        lambda lines: _leased(lines, _epoch("client", "dlv_2", 1), event_type=ResultType.SUCCEEDED),
    ),
    "a smaller sequence for what a client confirmed later": (
        Invariant.H2,
        lambda lines: _moved(lines, Confirm, lambda each: _client(each) and each.sequence == 1, 20),
    ),
    "a journal row from before the one that it follows": (
        Invariant.H2,
        lambda lines: change(lines, ResultFact, lambda row: row.sequence == 1, begin=at(20), end=at(20)),
    ),
    "a matching result that the cursor passed over": (
        Invariant.H3,
        lambda lines: drop(lines, DeliveryFact, lambda row: row.sequence == 2),
    ),
    "a result of another type than the subscription's": (
        Invariant.H3,
        lambda lines: change(lines, SubscriptionFact, lambda _: True, types=(ResultType.SUCCEEDED,)),
    ),
    "a result from before the start": (
        Invariant.H3,
        lambda lines: change(lines, SubscriptionFact, lambda _: True, from_sequence=1),
    ),
    "a result that was materialised twice": (
        Invariant.H3,
        lambda lines: [
            *lines,
            next(row for row in lines if isinstance(row, DeliveryFact)).model_copy(update={"delivery": "dlv_9"}),
        ],
    ),
    "a result of another queue": (
        Invariant.H3,
        lambda lines: change(lines, ResultFact, lambda row: row.sequence == 3, queue="q_2"),
    ),
    "a lease of a greater sequence while a smaller one was never leased": (
        Invariant.H3,
        lambda lines: drop(lines, Claim, lambda claim: claim.leased[0].delivery == "dlv_2"),
    ),
    "more deliveries in the window than it holds": (
        Invariant.H4,
        lambda lines: change(lines, DeliveryFact, lambda row: row.sequence == 4, created_at=at(4.5)),
    ),
    "a counter that does not follow the rows": (
        Invariant.H4,
        lambda lines: change(lines, SubscriptionFact, lambda _: True, pending_count=0),
    ),
    "a pull that reports more than the window": (
        Invariant.H4,
        lambda lines: change(lines, Claim, _client, pending_count=3),
    ),
    "a lease given while another one ran": (
        Invariant.H5,
        lambda lines: _moved(lines, Claim, lambda claim: claim.leased[0].epoch == 2, 20),
    ),
    "one epoch for two leases": (
        Invariant.H5,
        lambda lines: _leased(lines, _epoch(DATABASE, "dlv_1", 2), epoch=1),
    ),
    "an epoch that came before the one below it": (
        Invariant.H5,
        lambda lines: _moved(lines, Claim, lambda claim: claim.leased[0].epoch == 3, 1),
    ),
    "a lease that the audit log does not know": (
        Invariant.H5,
        lambda lines: (
            drop(lines, Claim, _epoch(DATABASE, "dlv_2", 1))
            + [
                line
                for line in lines
                if isinstance(line, Claim) and _database(line) and line.leased[0].delivery == "dlv_2"
                for line in [line.model_copy(update={"leased": (line.leased[0].model_copy(update={"epoch": 7}),)})]
            ]
        ),
    ),
    "an acknowledgement with the proof of an older lease": (
        Invariant.H6,
        lambda lines: change(lines, Ack, lambda ack: _database(ack) and ack.delivery == "dlv_1", epoch=1),
    ),
    "an acknowledgement with a secret that was never handed out": (
        Invariant.H6,
        lambda lines: change(
            lines, Ack, lambda ack: _client(ack) and ack.delivery == "dlv_1", proof=digest_of("a guess")
        ),
    ),
    "two effective acknowledgements of one delivery": (
        Invariant.H6,
        lambda lines: _later_id(lines, Ack, lambda ack: _client(ack) and ack.delivery == "dlv_2"),
    ),
    "a repeated acknowledgement that got another time": (
        Invariant.H6,
        lambda lines: _later_id(
            lines,
            Ack,
            lambda ack: _client(ack) and ack.delivery == "dlv_2",
            duplicate=True,
            acked_at=at(3.5),
        ),
    ),
    "a delivery after its acknowledgement": (
        Invariant.H6,
        lambda lines: _moved(lines, Ack, lambda ack: ack.delivery == "dlv_1", 3),
    ),
    "an acknowledgement that the row forgot": (
        Invariant.H6,
        lambda lines: change(
            lines, DeliveryFact, lambda row: row.sequence == 2, state=DeliveryState.PENDING, acked_at=None
        ),
    ),
    "a repeated request with another receipt": (
        Invariant.H7,
        lambda lines: _later_id(lines, Create, _client, receipt=digest_of("created differently")),
    ),
    "a pause whose repetition was answered differently": (
        Invariant.H7,
        lambda lines: _later_id(lines, Switch, _client, receipt=digest_of("something else")),
    ),
    "two receipts for one attempt": (
        Invariant.H7,
        lambda lines: _later_id(lines, Confirm, _client, receipt=digest_of("another receipt")),
    ),
    "a delivery of an event that a crash took back": (
        Invariant.H8,
        lambda lines: drop(lines, ResultFact, lambda row: row.sequence == 4),
    ),
    "a delivery that came back before its backoff": (
        Invariant.H9,
        lambda lines: _moved(
            lines, Claim, lambda claim: claim.leased[0].delivery == "dlv_1" and claim.begin > at(30), 32.5
        ),
    ),
    "a lease during a pause": (
        Invariant.H12,
        lambda lines: _moved(
            lines, Claim, lambda claim: claim.leased[0].delivery == "dlv_4" and claim.begin < at(20), 7
        ),
    ),
    "a result without an audit row": (
        Invariant.H13,
        lambda lines: drop(lines, Confirm, lambda each: _database(each) and each.sequence == 3),
    ),
    "an acknowledgement that was audited twice": (
        Invariant.H13,
        lambda lines: _later_id(lines, Ack, lambda ack: _database(ack) and ack.delivery == "dlv_2"),
    ),
    "a lease without an audit row": (
        Invariant.H13,
        lambda lines: drop(lines, Claim, _epoch(DATABASE, "dlv_4", 3)),
    ),
    "a budget that grew without a manual retry": (
        Invariant.H13,
        lambda lines: change(lines, DeliveryFact, lambda row: row.sequence == 2, budget=3),
    ),
    "a creation without an audit row": (Invariant.H13, lambda lines: drop(lines, Create, _database)),
    "a resume without an audit row": (
        Invariant.H13,
        lambda lines: drop(lines, Switch, lambda each: _database(each) and each.op == "resume"),
    ),
    "a status that no audit row explains": (
        Invariant.H13,
        lambda lines: change(lines, SubscriptionFact, lambda _: True, status=SubscriptionStatus.PAUSED),
    ),
}


def test_a_history_in_which_all_is_right_passes_every_invariant() -> None:
    """Nothing is found, and no invariant passes because there was nothing to look at."""
    verdict = check_history(History.of(clean_history()))
    assert verdict.violations == []
    assert verdict.holds
    assert all(verdict.checked.values()), verdict.checked


@pytest.mark.parametrize("what", BROKEN)
def test_a_history_with_one_broken_promise_is_caught_by_its_invariant(what: str) -> None:
    """Each invariant finds its own twins; others may see the same damage."""
    invariant, breaker = BROKEN[what]
    verdict = check_history(History.of(breaker(clean_history())))
    assert not verdict.holds
    assert verdict.found[invariant], [f"{each.invariant} {each.subject}: {each.detail}" for each in verdict.violations]


def test_every_invariant_has_a_broken_history() -> None:
    """An invariant that nothing can break would not be looked at."""
    assert {invariant for invariant, _ in BROKEN.values()} == set(Invariant) == set(PROMISES)


def test_a_lease_that_was_aged_by_hand_proves_nothing_about_time() -> None:
    """Tests that cannot wait say so in the history, and only the pair of leases around that moment is let off."""
    lines = _moved(clean_history(), Claim, lambda claim: claim.leased[0].epoch == 2, 20)
    aged = Aged(id="a1", process="harness", begin=at(19), end=at(19), delivery="dlv_1")
    verdict = check_history(History.of([*lines, aged]))
    broken = {violation.subject for violation in verdict.violations if violation.invariant is Invariant.H5}
    assert broken == {"dlv_4"}
    assert verdict.aged == 1


def test_an_operation_without_an_end_is_no_evidence() -> None:
    """A client that died with its request on the way may or may not have been heard."""
    lines = clean_history()
    for kind in (Claim, Ack, Confirm, Switch):
        lines = [
            line.model_copy(update={"end": None}) if isinstance(line, kind) and line.process != DATABASE else line
            for line in lines
        ]
    verdict = check_history(History.of(lines))
    assert verdict.holds, verdict.violations
    assert verdict.open_operations > 0


def test_a_history_of_clients_alone_is_checked_as_far_as_it_goes() -> None:
    """Without what the database says there is nothing for the audit log to be held against."""
    lines: Lines = [line for line in clean_history() if isinstance(line, Operation) and line.process != DATABASE]
    verdict = check_history(History.of(lines))
    assert verdict.holds
    assert verdict.checked[Invariant.H13] == 0
    assert verdict.checked[Invariant.H6] > 0


def test_the_checker_keeps_a_few_violations_and_counts_them_all() -> None:
    """A history of a million lines with one broken clock must not fill the memory."""
    row = next(line for line in clean_history() if isinstance(line, ResultFact))
    rows: Lines = [row.model_copy(update={"sequence": number * 2, "event": f"e{number}"}) for number in range(1, 100)]
    verdict = check_history(History.of(rows))
    assert len(verdict.violations) == VIOLATIONS_KEPT_MAX
    assert verdict.found[Invariant.H1] == 99


def test_the_backoff_is_that_of_the_specification() -> None:
    """1, 2, 4, 8, 16, then 30 seconds for ever."""
    assert [backoff(attempts) / timedelta(seconds=1) for attempts in (1, 2, 3, 4, 5, 6, 7, 1_000_000)] == [
        1, 2, 4, 8, 16, 30, 30, 30,
    ]  # fmt: skip
