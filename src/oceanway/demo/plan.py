"""A working day as a value: which runs there are, what happens to each, and what each must cost in the end.

Everything follows from the seed. A run has one to four steps and each step one to three attempts; some attempts fail
or are never dispatched. Usage and cost come early, late, in pieces, revised, or not at all; runs are closed before or
after their usage is known; now and then an owner's own facts contradict each other. What a dimension must cost in the
end depends on the last statement about its usage and on nothing that happens on the way.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final, Literal

Outcome = Literal["succeeded", "failed", "not_dispatched"]
State = Literal["available", "pending", "not_reported", "unavailable", "conflicting"]
Trouble = Literal["none", "execution", "usage", "binding", "settlement"]
Kind = Literal["provider_usage", "provider_cost"]

CURRENCY: Final = "EUR"
CENT: Final = Decimal("0.01")
PRICE_BOOK: Final = ("standard", "2026-1")
COST_DIMENSION: Final = "cost.total"
POOR_SHARE: Final = 0.2
RUNS_PER_ACCOUNT: Final = 20
REVISED_SHARE: Final = 0.12
SURGE: Final = Decimal(400)
"""By how much a poor account's usage is revised: more than its released money covers."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One thing that can be charged: its usage dimension, unit and unit price in `CURRENCY`."""

    key: str
    usage: str
    unit: str
    price: Decimal

    def amount(self, quantity: str | None) -> Decimal:
        """What this quantity costs, rounded to the cent, half to even."""
        return (Decimal(quantity or 0) * self.price).quantize(CENT, ROUND_HALF_EVEN)


CHARGES: Final = (
    Charge("seconds", "usage.seconds", "second", Decimal("0.0375")),
    Charge("tokens", "usage.tokens", "token", Decimal("0.0021")),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that the gateway says about a chain; `value` is decimal text where evidence is available."""

    state: State
    value: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedChain:
    """What is said about one usage or cost dimension of an attempt.

    Attributes:
        early: before the bill; the first of them may come before or after the attempt's end.
        late: after the bill.
    """

    kind: Kind
    dimension: str
    measure: str
    early: tuple[Statement, ...]
    late: tuple[Statement, ...] = ()

    @property
    def quantity(self) -> str | None:
        """The last word about it; None when nothing was used as far as anybody can tell."""
        return ([*self.early, *self.late])[-1].value


@dataclass(frozen=True, slots=True)
class PlannedAttempt:
    """One attempt; `is_eager` says that its end is announced before its usage."""

    id: str
    step_id: str
    outcome: Outcome
    is_eager: bool
    chains: tuple[PlannedChain, ...]

    def usage(self, charge: Charge) -> PlannedChain | None:
        """The chain behind a charge; None for an attempt without a gateway."""
        return next((chain for chain in self.chains if chain.dimension == charge.usage), None)

    @property
    def is_billable(self) -> bool:
        """Whether it succeeded and every usage of it is known; an attempt is billed as a whole (AMB-49)."""
        usages = [chain for chain in self.chains if chain.kind == "provider_usage"]
        return self.outcome == "succeeded" and all(chain.quantity is not None for chain in usages)

    def highest(self, charge: Charge) -> Decimal:
        """The most that the charge can come to with the bill, whichever statement is the last before it."""
        chain = self.usage(charge)
        said = () if chain is None or self.outcome != "succeeded" else chain.early
        return max((charge.amount(one.value) for one in said), default=Decimal(0))

    def target(self, charge: Charge) -> Decimal:
        """What the charge must come to in the end."""
        chain = self.usage(charge)
        return charge.amount(chain.quantity) if self.is_billable and chain is not None else Decimal(0)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run; `closes_early` says that its attempt set is closed before the providers have reported."""

    number: int
    account: int
    charges: tuple[Charge, ...]
    attempts: tuple[PlannedAttempt, ...]
    reserved: Decimal
    closes_early: bool
    trouble: Trouble

    @property
    def name(self) -> str:
        """What the identifiers of the run are made of."""
        return f"{self.number:06d}"

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps, in order."""
        return tuple(dict.fromkeys(attempt.step_id for attempt in self.attempts))

    @property
    def is_held(self) -> bool:
        """Whether the run is closed only once metering has contradicted itself about its first attempt."""
        return self.trouble == "settlement"

    @property
    def is_revised(self) -> bool:
        """Whether a provider changes its word after the bill."""
        return any(chain.late for attempt in self.attempts for chain in attempt.chains)

    @property
    def is_disputed(self) -> bool:
        """Whether metering contradicts itself for a while when the provider changes its word."""
        return self.is_revised and self.number % 4 == 0


@dataclass(frozen=True, slots=True)
class Day:
    """A day: its runs, and the deposit of each account by its number."""

    seed: int
    runs: tuple[PlannedRun, ...]
    deposits: dict[int, Decimal]


def plan(seed: int, runs: int, first: int = 0) -> Day:
    """The day of a seed; `first` numbers its runs and accounts, so that days of one platform share none."""
    rng = random.Random(f"day-{seed}-{first}")
    start, count = first // RUNS_PER_ACCOUNT, max(1, runs // RUNS_PER_ACCOUNT)
    accounts = range(start, start + count)
    poor = {number for number in accounts if rng.random() < POOR_SHARE}
    planned = tuple(
        _run(rng, first + number, accounts[number % count], is_poor=accounts[number % count] in poor)
        for number in range(runs)
    )
    deposits = dict.fromkeys(accounts, Decimal(0))
    for one in planned:
        deposits[one.account] += one.reserved
    for number in accounts:
        if number not in poor:
            deposits[number] += Decimal(rng.randrange(5_000, 20_000))
    return Day(seed, planned, deposits)


def _run(rng: random.Random, number: int, account: int, *, is_poor: bool) -> PlannedRun:
    charges = CHARGES if rng.random() < 0.08 else (rng.choice(CHARGES),)  # noqa: PLR2004 - a share of the day
    trouble: Trouble = rng.choices(("none", "execution", "usage", "binding", "settlement"), weights=(976, 8, 6, 6, 4))[
        0
    ]
    is_revised = rng.random() < REVISED_SHARE
    name = f"{number:06d}"
    attempts: list[PlannedAttempt] = []
    for step in range(rng.choices((1, 2, 3, 4), weights=(78, 14, 5, 3))[0]):
        for attempt in range(rng.choices((1, 2, 3), weights=(91, 7, 2))[0]):
            identity = f"attempt-{name}-{step}-{attempt}"
            is_last = attempt == 0  # the first one planned is the last one made: those before it failed
            attempts.append(_attempt(rng, identity, f"step-{name}-{step}", charges, may_succeed=is_last))
    if is_revised or trouble in {"usage", "settlement", "binding"}:
        attempts[0] = _revised(rng, attempts[0], charges, is_poor=is_poor, late=is_revised)
    highest = sum((attempt.highest(charge) for attempt in attempts for charge in charges), Decimal(0))
    is_short = rng.random() < 0.03 and not is_poor  # noqa: PLR2004 - a poor account has nothing to draw from
    share = Decimal(rng.randrange(80, 100) if is_short else rng.randrange(105, 160)) / 100
    reserved = highest * share + 1
    return PlannedRun(
        number=number,
        account=account,
        charges=charges,
        attempts=tuple(attempts),
        reserved=reserved.quantize(CENT, ROUND_HALF_EVEN),
        closes_early=rng.random() < 0.4,  # noqa: PLR2004 - a share of the day
        trouble=trouble,
    )


def _attempt(
    rng: random.Random, identity: str, step_id: str, charges: tuple[Charge, ...], *, may_succeed: bool
) -> PlannedAttempt:
    outcome: Outcome = (
        rng.choices(("succeeded", "failed", "not_dispatched"), weights=(94, 3, 3))[0]
        if may_succeed
        else rng.choices(("failed", "not_dispatched"), weights=(4, 1))[0]
    )
    chains: list[PlannedChain] = []
    if outcome != "not_dispatched":
        chains += [
            PlannedChain("provider_usage", charge.usage, charge.unit, _usage(rng))
            for charge in charges
            if outcome == "succeeded" or rng.random() < 0.5  # noqa: PLR2004 - a share of the day
        ]
        if rng.random() < 0.3:  # noqa: PLR2004 - a share of the day
            chains.append(PlannedChain("provider_cost", COST_DIMENSION, CURRENCY, _cost(rng)))
    return PlannedAttempt(identity, step_id, outcome, rng.random() < 0.5, tuple(chains))  # noqa: PLR2004


def _revised(
    rng: random.Random, attempt: PlannedAttempt, charges: tuple[Charge, ...], *, is_poor: bool, late: bool
) -> PlannedAttempt:
    """An attempt that succeeded, with usage that is known and perhaps revised after the bill."""
    chains = [
        PlannedChain("provider_usage", charge.usage, charge.unit, (Statement("available", _quantity(rng)),))
        for charge in charges
    ]
    first = chains[0]
    known = Decimal(first.early[-1].value or 0)
    if late:
        factor = SURGE if is_poor else rng.choice((Decimal("0.5"), Decimal("1.3"), Decimal(3)))
        revised = Statement("available", text(known * factor))
        chains[0] = PlannedChain(first.kind, first.dimension, first.measure, first.early, (revised,))
    others = [chain for chain in attempt.chains if chain.kind == "provider_cost"]
    return PlannedAttempt(attempt.id, attempt.step_id, "succeeded", attempt.is_eager, (*chains, *others))


def _usage(rng: random.Random) -> tuple[Statement, ...]:
    known = Statement("available", _quantity(rng))
    return rng.choices(
        (
            (known,),
            (Statement("pending"), known),
            (Statement("not_reported"),),
            (Statement("unavailable"),),
            (known, Statement("available", _quantity(rng))),
        ),
        weights=(78, 12, 3, 2, 5),
    )[0]


def _cost(rng: random.Random) -> tuple[Statement, ...]:
    known = Statement("available", text(Decimal(rng.randrange(1, 4_000)) / 1_000))
    return rng.choices(
        ((known,), (Statement("pending"), known), (Statement("not_reported"),), (Statement("conflicting"), known)),
        weights=(76, 12, 8, 4),
    )[0]


def _quantity(rng: random.Random) -> str:
    return text(Decimal(rng.randrange(10, 60_000)) / 10)


def text(number: Decimal) -> str:
    """A decimal in its only spelling."""
    plain = format(number, "f")
    return (plain.rstrip("0").rstrip(".") if "." in plain else plain) or "0"
