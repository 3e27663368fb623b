"""The states of the world of deliveries, what must hold in each, and which of them are the same but for names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise, permutations
from typing import Final, NamedTuple

from seapost.model.delivery import DeliveryStatus
from tests.kit.transitions import ACKNOWLEDGED, LEASED, PENDING, QUARANTINED, TABLE, Finish, Transition, TransitionTable

PLACE: Final = {PENDING: 1, LEASED: 2, ACKNOWLEDGED: 4, QUARANTINED: 8}
STATUS: Final = {bit: status for status, bit in PLACE.items()}
OPEN, TWICE = 0, 9
FINISH: Final = {finish: number for number, finish in enumerate(Finish, 1)}

WORKERS: Final = ("ann", "bob", "cid")
DESTINATIONS: Final = ("billing", "search", "billing (second event)")


class At(IntEnum):
    """Where a worker is between two steps."""

    DEAD = 0
    IDLE = 1
    CLAIMED = 2
    CALLING = 3
    RECEIPT = 4
    FAILURE = 5
    REJECTION = 6
    EMPTY = 7
    ACKNOWLEDGING = 8
    PUBLISHING = 9
    UNCOMMITTED = 10
    HALF = 11


DOING: Final = {
    At.DEAD: "is dead",
    At.IDLE: "is idle",
    At.CLAIMED: "has claimed",
    At.CALLING: "is calling",
    At.RECEIPT: "has a receipt of",
    At.FAILURE: "has seen a failure of",
    At.REJECTION: "has a rejection of",
    At.EMPTY: "has a success without receipt of",
    At.ACKNOWLEDGING: "has not committed its acknowledgement of",
    At.PUBLISHING: "has not committed its last acknowledgement of",
    At.UNCOMMITTED: "has not committed its claim of",
    At.HALF: "waits for the other half of",
}
IN_TRANSACTION: Final = frozenset({At.ACKNOWLEDGING, At.PUBLISHING})


class Delivery(NamedTuple):
    """One delivery in the database, and what its consumer holds of the event.

    Attributes:
        places: bits of the tables that hold it.
        token: of the lease, 0 without.
        time_up: a pending one is due, a leased one has expired.
        receipt: the consumer has committed a receipt.
        effects: how often the consumer has applied the event, counted up to 2.
        attempts: token and finish of each attempt that somebody still knows of.
    """

    places: int = 1
    token: int = 0
    time_up: bool = True
    receipt: bool = False
    effects: int = 0
    attempts: tuple[tuple[int, int], ...] = ()


class Worker(NamedTuple):
    """Where a worker is, and which attempt of which delivery it believes to be its own."""

    at: At
    delivery: int = 0
    token: int = 0


IDLE: Final = Worker(At.IDLE)
DEAD: Final = Worker(At.DEAD)
Call = tuple[int, int]


class State(NamedTuple):
    """Everything at one moment.

    Attributes:
        calls: delivery and token of each call under way that nobody waits for.
        published: how often each event has been published, counted up to 2.
        recovering: what a recovery in two statements has seen.
        owed: how many deliveries each event has; never changes.
    """

    deliveries: tuple[Delivery, ...]
    workers: tuple[Worker, ...]
    calls: tuple[Call, ...] = ()
    published: tuple[int, ...] = (0,)
    recovering: tuple[int, ...] = ()
    owed: tuple[int, ...] = (2,)


@dataclass(frozen=True, slots=True)
class Rules:
    """What protects the deliveries; each can be taken away."""

    table: TransitionTable = TABLE
    claim_commits_first: bool = True
    publication_lock: bool = True
    publication_looks: bool = True
    recovery: bool = True
    recovery_is_one_statement: bool = True
    recovery_takes_the_lease: bool = True
    recovery_finishes: bool = True
    refusal_writes_nothing: bool = True
    inbox: bool = True
    receipt_first: bool = False
    effect_first: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """How large the world is: deliveries of each event, workers, calls at once that outlive their worker."""

    owed: tuple[int, ...] = (2,)
    workers: int = 2
    calls: int = 1


# Moves ------------------------------------------------------------------------------------------------------


def status_of(delivery: Delivery) -> DeliveryStatus:
    """Where a delivery is, in a state that is not broken."""
    return STATUS[delivery.places]


def event_of(state: State, number: int) -> int:
    """The event of a delivery."""
    return 0 if number < state.owed[0] else 1


def siblings(state: State, event: int) -> range:
    """The deliveries of an event."""
    first = sum(state.owed[:event])
    return range(first, first + state.owed[event])


def holds(delivery: Delivery, worker: Worker) -> bool:
    """Whether the lease of the delivery is the worker's own."""
    return delivery.token == worker.token and bool(delivery.places & PLACE[LEASED])


def with_delivery(state: State, number: int, delivery: Delivery) -> State:
    """The state with one delivery changed."""
    rows = state.deliveries
    return state._replace(deliveries=(*rows[:number], delivery, *rows[number + 1 :]))


def with_worker(state: State, index: int, worker: Worker) -> State:
    """The state with one worker changed."""
    workers = state.workers
    return state._replace(workers=(*workers[:index], worker, *workers[index + 1 :]))


def with_call(state: State, call: Call) -> State:
    """The state with one more call under way."""
    return state._replace(calls=tuple(sorted({*state.calls, call})))


def without_call(state: State, call: Call) -> State:
    """The state with a call done."""
    return state._replace(calls=tuple(other for other in state.calls if other != call))


def finished(delivery: Delivery, line: Transition, token: int) -> Delivery:
    """The delivery moved along a line of the table, its attempt finished."""
    moved = delivery._replace(places=PLACE[line.target], token=0, time_up=False)
    return with_finish(moved, line, token)


def with_finish(delivery: Delivery, line: Transition, token: int) -> Delivery:
    """The delivery with one more finish of an attempt."""
    assert line.finish is not None
    finish = FINISH[line.finish]
    return delivery._replace(
        attempts=tuple(
            (known, (finish if old == OPEN else TWICE) if known == token else old) for known, old in delivery.attempts
        )
    )


def new_token(state: State, number: int) -> int:
    """A token that nobody knows yet; which number it is means nothing."""
    used = {token for token, _ in state.deliveries[number].attempts} | set(_known(state, number))
    return next(token for token in range(1, len(used) + 2) if token not in used)


def _known(state: State, number: int) -> Iterator[int]:
    """The tokens of a delivery that somebody still carries, in the order of who does."""
    if state.deliveries[number].token:
        yield state.deliveries[number].token
    for worker in state.workers:
        if worker.token and worker.delivery == number:
            yield worker.token
    for delivery, token in state.calls:
        if delivery == number:
            yield token


# Rules ------------------------------------------------------------------------------------------------------


def broken(state: State) -> str | None:
    """The first rule that a state breaks."""
    for delivery in state.deliveries:
        if rule := _broken_delivery(delivery):
            return rule
    for event, times in enumerate(state.published):
        if times != all(state.deliveries[number].places == PLACE[ACKNOWLEDGED] for number in siblings(state, event)):
            return "an event is published if and only if all its mandatory deliveries are acknowledged"
    return None


def _broken_delivery(delivery: Delivery) -> str | None:
    if delivery.places not in STATUS:
        return "a delivery is in exactly one place"
    leased = delivery.places == PLACE[LEASED]
    for token, finish in delivery.attempts:
        if finish == TWICE:
            return "an attempt has at most one finish"
        if (finish == OPEN) != (leased and token == delivery.token):
            return "an attempt without a finish belongs to the lease of now"
    if delivery.effects > 1:
        return "a consumer applies an event at most once"
    if delivery.places == PLACE[ACKNOWLEDGED]:
        if not delivery.receipt:
            return "a delivery is acknowledged only with the consumer's receipt"
        if not delivery.effects:
            return "an acknowledged event has been applied"
    return None


def rests(state: State) -> bool:
    """Whether every delivery has ended."""
    return all(delivery.places & 12 for delivery in state.deliveries)


# Names ------------------------------------------------------------------------------------------------------


def canonical(state: State) -> State:
    """One state for all that differ in the names of workers, destinations and tokens only, or in forgotten attempts."""
    candidates = [
        _renamed(state, order, workers) for order in _delivery_orders(state) for workers in _worker_orders(state, order)
    ]
    return candidates[0] if len(candidates) == 1 else min(candidates)


def _delivery_orders(state: State) -> list[tuple[int, ...]]:
    """The orders of the deliveries of each event, where what is stored of them does not tell them apart."""
    rows = state.deliveries
    orders: list[tuple[int, ...]] = [()]
    for event, owed in enumerate(state.owed):
        first = sum(state.owed[:event])
        numbers = sorted(range(first, first + owed), key=lambda number: _delivery_key(rows[number]))
        keys = [_delivery_key(rows[number]) for number in numbers]
        if len(set(keys)) == owed:
            ways = [tuple(numbers)]
        else:
            ways = [w for w in permutations(numbers) if [_delivery_key(rows[number]) for number in w] == keys]
        orders = [(*order, *way) for order in orders for way in ways]
    return orders


def _delivery_key(delivery: Delivery) -> tuple[int, bool, bool, int]:
    return delivery.places, delivery.time_up, delivery.receipt, delivery.effects


def _worker_orders(state: State, order: tuple[int, ...]) -> list[tuple[Worker, ...]]:
    """The workers sorted by what they do and to which delivery; every way where that does not tell them apart."""
    workers = sorted(
        Worker(at, order.index(delivery), token) if token else Worker(at) for at, delivery, token in state.workers
    )
    if all(one[:2] != two[:2] or one == two for one, two in pairwise(workers)):
        return [tuple(workers)]
    keys = [worker[:2] for worker in workers]
    return [ways for ways in permutations(workers) if [worker[:2] for worker in ways] == keys]


def _renamed(state: State, order: tuple[int, ...], workers: tuple[Worker, ...]) -> State:
    names: list[dict[int, int]] = [
        {state.deliveries[old].token: 1} if state.deliveries[old].token else {} for old in order
    ]
    for _, number, token in workers:
        if token:
            names[number].setdefault(token, len(names[number]) + 1)
    for old, token in state.calls:
        names[order.index(old)].setdefault(token, len(names[order.index(old)]) + 1)
    return State(
        tuple(_renamed_delivery(state.deliveries[old], names[number]) for number, old in enumerate(order)),
        tuple(Worker(at, number, names[number][token] if token else 0) for at, number, token in workers),
        tuple(sorted((order.index(old), names[order.index(old)][token]) for old, token in state.calls)),
        state.published,
        tuple(order.index(old) for old in state.recovering),
        state.owed,
    )


def _renamed_delivery(delivery: Delivery, names: dict[int, int]) -> Delivery:
    """Forget an attempt that ended well and that nobody knows of; one that did not is kept for `broken` to see."""
    places, token, time_up, receipt, effects, attempts = delivery
    if not attempts:
        return delivery
    known = [
        (names.get(name, len(names) + 1), finish)
        for name, finish in attempts
        if name in names or finish in {OPEN, TWICE}
    ]
    known.sort()
    return Delivery(places, names.get(token, 0), time_up, receipt, effects, tuple(known))


def describe(state: State) -> str:
    """The state in words."""
    parts = [
        f"{DESTINATIONS[number]} is {' and '.join(_places(delivery))}"
        f"{' (expired)' if delivery.time_up and delivery.places == PLACE[LEASED] else ''},"
        f" {'receipt' if delivery.receipt else 'no receipt'}, effects: {delivery.effects}"
        for number, delivery in enumerate(state.deliveries)
    ]
    for index, worker in enumerate(state.workers):
        parts.append(
            f"{WORKERS[index]} {DOING[worker.at]}{f' {DESTINATIONS[worker.delivery]}' if worker.token else ''}"
        )
    parts.append(f"times published: {', '.join(map(str, state.published))}")
    return "; ".join(parts)


def _places(delivery: Delivery) -> Iterator[str]:
    for bit, status in STATUS.items():
        if delivery.places & bit:
            yield str(status)
