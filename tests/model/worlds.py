"""The worlds that must be without a broken rule, and their broken twins, in which harm must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.kit.transitions import TABLE, Guard, Verb
from tests.model import activation, wake
from tests.model.delivery import DeliveryWorld
from tests.model.delivery_state import Rules, Size
from tests.model.explore import Exploration, World, explore

ONE: Final = Size(owed=(1,))
TWO: Final = Size(owed=(2,), calls=0)
LARGE: Final = Size(owed=(2,))
TWO_EVENTS: Final = Size(owed=(2, 1), calls=0)
STUCK: Final = "nothing is lost: from here no ordinary step leads to the end"


@dataclass(frozen=True, slots=True)
class Twin:
    """A world with one protection taken out, and the rule that must break.

    Attributes:
        name: for the command line and for the test.
        without: what is taken out, in words.
        rule: the rule whose breach must be found.
        explore: explores it.
    """

    name: str
    without: str
    rule: str
    explore: Callable[[], Exploration]


def sound(*, small: bool) -> list[World[Any]]:
    """The worlds as they are built; the small choice leaves out the largest."""
    sizes = [LARGE] if small else [LARGE, TWO_EVENTS]
    return [
        *(DeliveryWorld(Rules(), size) for size in sizes),
        wake.WakeWorld(events=2 if small else 3),
        activation.ActivationWorld(),
    ]


def _deliveries(name: str, without: str, rule: str, rules: Rules, size: Size = ONE) -> Twin:
    return Twin(name, without, rule, lambda: explore(DeliveryWorld(rules, size)))


def _unfenced(verb: Verb) -> Twin:
    rules = Rules(table=TABLE.without(verb, Guard.HELD))
    return _deliveries(
        f"stale-{verb}", f"{verb} does not compare the token", f"no stale word is believed: {verb}", rules
    )


def _wake(name: str, without: str, rules: wake.Rules) -> Twin:
    return Twin(name, without, STUCK, lambda: explore(wake.WakeWorld(rules, events=2, dispatchers=1)))


def _activation(name: str, without: str, rules: activation.Rules) -> Twin:
    rule = "no event is frozen against a retired delivery set"
    return Twin(name, without, rule, lambda: explore(activation.ActivationWorld(rules)))


def _receipts_and_effects() -> list[Twin]:
    return [
        _deliveries(
            "unproven-acknowledgement",
            "acknowledge does not look at the receipt",
            "a delivery is acknowledged only with the consumer's receipt",
            Rules(table=TABLE.without(Verb.ACKNOWLEDGE, Guard.PROVEN)),
        ),
        _deliveries(
            "no-inbox",
            "the consumer does not look for an earlier receipt",
            "a consumer applies an event at most once",
            Rules(inbox=False),
        ),
        _deliveries(
            "effect-first",
            "the effect is committed before the receipt",
            "a consumer applies an event at most once",
            Rules(effect_first=True),
        ),
        _deliveries(
            "receipt-first",
            "the receipt is committed before the effect",
            "an acknowledged event has been applied",
            Rules(receipt_first=True),
        ),
    ]


def _recoveries() -> list[Twin]:
    return [
        _deliveries(
            "early-recovery",
            "recover does not ask whether the lease has expired",
            "only an expired lease is recovered",
            Rules(table=TABLE.without(Verb.RECOVER, Guard.EXPIRED)),
        ),
        _deliveries(
            "recovery-by-key",
            "recover looks first and ends the lease later, without comparing the attempt",
            "only an expired lease is recovered",
            Rules(recovery_is_one_statement=False),
        ),
        _deliveries(
            "recovery-keeps-lease",
            "recover makes the delivery due and leaves the lease",
            "a delivery is in exactly one place",
            Rules(recovery_takes_the_lease=False),
        ),
        _deliveries(
            "recovery-without-finish",
            "recover writes no finish",
            "an attempt without a finish belongs to the lease of now",
            Rules(recovery_finishes=False),
        ),
        _deliveries("no-recovery", "nobody recovers", STUCK, Rules(recovery=False)),
    ]


def twins() -> list[Twin]:
    """Every broken twin."""
    published = "an event is published if and only if all its mandatory deliveries are acknowledged"
    return [
        *(_unfenced(verb) for verb in (Verb.ACKNOWLEDGE, Verb.RETRY, Verb.QUARANTINE, Verb.RENEW)),
        _deliveries(
            "refusal-writes",
            "a refused settle still writes its finish",
            "an attempt has at most one finish",
            Rules(refusal_writes_nothing=False),
        ),
        _deliveries(
            "late-claim-commit",
            "the claim is committed after the call",
            "a consumer is called only for an attempt whose start is committed",
            Rules(claim_commits_first=False),
        ),
        *_receipts_and_effects(),
        *_recoveries(),
        _deliveries("no-publication-lock", "acknowledge takes no lock", published, Rules(publication_lock=False), TWO),
        _deliveries(
            "hasty-publication",
            "acknowledge does not look at the other deliveries",
            published,
            Rules(publication_looks=False),
            TWO,
        ),
        _wake("no-poll", "a sleeper waits for its notification alone", wake.Rules(polls=False)),
        _wake("no-sweep", "every claim but the first starts at the hint", wake.Rules(sweeps=False)),
        _activation("append-without-lock", "append takes no lock", activation.Rules(append_locks=False)),
        _activation(
            "old-snapshot", "an append in REPEATABLE READ is not refused", activation.Rules(snapshot_is_checked=False)
        ),
    ]
