"""The day of the demo as a value: the same for a seed, with everything in it that it promises, and its own sums."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

from oceanway.demo.fold import Fold
from oceanway.demo.ledger import Ledger, LedgerWriter
from oceanway.demo.plan import CHARGES, plan, text

RUNS = 2_000


def test_a_seed_is_one_day_and_another_seed_another() -> None:
    """The auditor makes the plan again from the seed, so it must be the same."""
    assert plan(7, 50) == plan(7, 50)
    assert plan(7, 50) != plan(8, 50)


def test_a_day_holds_everything_that_it_promises() -> None:
    """Steps and attempts within their bounds, every outcome, every state, every trouble, and late words."""
    runs = plan(1, RUNS).runs
    attempts = [attempt for run in runs for attempt in run.attempts]
    said = [one for attempt in attempts for chain in attempt.chains for one in (*chain.early, *chain.late)]

    assert {len(run.steps) for run in runs} == {1, 2, 3, 4}
    assert set(Counter(attempt.step_id for attempt in attempts).values()) == {1, 2, 3}
    assert {attempt.outcome for attempt in attempts} == {"succeeded", "failed", "not_dispatched"}
    assert {one.state for one in said} == {"available", "pending", "not_reported", "unavailable", "conflicting"}
    assert {run.trouble for run in runs} == {"none", "execution", "usage", "binding", "settlement"}
    assert {run.closes_early for run in runs} == {True, False}
    assert any(run.is_revised for run in runs)
    assert not any(attempt.chains for attempt in attempts if attempt.outcome == "not_dispatched")


def test_accounts_can_pay_what_is_reserved_and_some_no_more_than_that() -> None:
    """An admission never fails in the day; a poor account has nothing beyond its reservations."""
    day = plan(1, RUNS)
    reserved = dict.fromkeys(day.deposits, Decimal(0))
    for run in day.runs:
        reserved[run.account] += run.reserved

    assert all(day.deposits[account] >= needed for account, needed in reserved.items())
    assert any(day.deposits[account] == needed for account, needed in reserved.items())


def test_days_that_follow_each_other_share_neither_runs_nor_accounts() -> None:
    """A measurement plays several of them on one platform."""
    one, other = plan(1, 100), plan(1, 100, first=100)

    assert {run.number for run in one.runs}.isdisjoint(run.number for run in other.runs)
    assert one.deposits.keys().isdisjoint(other.deposits)


def test_a_charge_is_rounded_half_to_even_and_nothing_used_costs_nothing() -> None:
    """The day's own arithmetic, apart from billing's."""
    seconds, tokens = CHARGES

    assert seconds.amount("0.2") == Decimal("0.01")  # 0.0075
    assert tokens.amount("50") == Decimal("0.10")  # 0.105: to the even cent
    assert tokens.amount("150") == Decimal("0.32")  # 0.315: to the even cent
    assert tokens.amount(None) == 0
    assert [text(Decimal(number)) for number in ("10", "1.50", "0.0", "600000")] == ["10", "1.5", "0", "600000"]


def test_the_ledger_knows_the_last_word_and_the_operators_commands(tmp_path: Path) -> None:
    """Each later line replaces what the plan says about its dimension."""
    path = tmp_path / "ledger.jsonl"
    run = next(run for run in plan(3, 100).runs if run.is_revised)
    attempt = run.attempts[0]
    with LedgerWriter(path) as writer:
        writer.day(3, 100)
        writer.revisions([(attempt.id, run.charges[0].key, "1000")])
        writer.command("late-case", "waive")

    ledger = Ledger.read(path)

    assert ledger.targets[attempt.id, run.charges[0].key] == run.charges[0].amount("1000")
    assert ledger.commands == {"late-case": "waive"}
    assert len(ledger.targets) == sum(len(run.attempts) * len(run.charges) for run in ledger.runs)


def test_the_fold_of_events_is_the_same_in_every_order() -> None:
    """The auditor's view of operations has no order, as the projector must have none."""
    place = {"runId": "run", "executionAttemptId": "attempt", "chargeDimensionKey": "tokens"}
    events: list[tuple[str, dict[str, Any]]] = [
        ("run.created@2.0", {"runId": "run"}),
        ("wallet.reserved@2.0", {"runId": "run", "reservedAmount": "10"}),
        (
            "billing.finalization.committed@1",
            {"runId": "run", "settledAmount": "4", "releasedAmount": "6", "dimensions": [{**place, "amount": "4"}]},
        ),
        (
            "billing.settlement-transition.committed@1",
            {
                **place,
                "ledgerDelta": "0",
                "waivedDelta": "0",
                "toRevision": 1,
                "exposure": {"state": "open", "amount": "90"},
            },
        ),
        (
            "billing.late-settlement-command-result.committed@1",
            {**place, "ledgerDelta": "0", "waivedDelta": "90", "toRevision": 2},
        ),
    ]
    folds: list[Fold] = []
    for order in itertools.permutations(events):
        fold = Fold()
        for event_type, payload in order:
            fold.add(event_type, json.loads(json.dumps(payload)))
        folds.append(fold)

    dimension = folds[0].runs["run"].dimensions["attempt", "tokens"]
    assert all(fold == folds[0] for fold in folds)
    assert (dimension.amount, dimension.waived, dimension.revision) == (Decimal(4), Decimal(90), 2)
    assert (dimension.exposure_state, dimension.exposure) == ("resolved", Decimal(0))
