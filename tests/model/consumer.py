"""The consumer's side of the world of deliveries: one transaction for receipt and effect, and every way to answer."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.delivery_state import (
    DESTINATIONS,
    WORKERS,
    At,
    Call,
    Delivery,
    Rules,
    State,
    with_call,
    with_delivery,
    with_worker,
    without_call,
)
from tests.model.explore import Step


def answers(state: State, index: int, rules: Rules, calls_max: int) -> Iterator[Step[State]]:
    """What may come of the call that a worker waits for."""
    worker = state.workers[index]
    number = worker.delivery
    name, delivery = DESTINATIONS[number], state.deliveries[number]
    heard = with_worker(state, index, worker._replace(at=At.RECEIPT))
    missed = with_worker(state, index, worker._replace(at=At.FAILURE))
    alarm = _unknown_attempt(delivery, worker.token)
    half = _half(delivery, rules)
    if half is None:
        received = _received(delivery, rules)
        does = "applies the event" if received.effects > delivery.effects else "knows the event"
        yield Step((name, does, "and answers", WORKERS[index]), with_delivery(heard, number, received), alarm=alarm)
        lost = (name, does, "but the answer to", WORKERS[index], "is lost")
        yield Step(lost, with_delivery(missed, number, received), fault=True, alarm=alarm)
    else:
        waiting = with_worker(state, index, worker._replace(at=At.HALF))
        which = "the receipt, not yet the effect" if half.receipt else "the effect, not yet the receipt"
        yield Step((name, "commits", which), with_delivery(waiting, number, half), alarm=alarm)
    if not delivery.receipt:
        rejected = with_worker(state, index, worker._replace(at=At.REJECTION))
        yield Step((name, "rejects the event for good"), rejected, fault=True)
        empty = with_worker(state, index, worker._replace(at=At.EMPTY))
        yield Step((name, "answers with success and no receipt"), empty, fault=True)
    yield Step((name, "fails or is not reached"), missed, fault=True)
    if len(state.calls) < calls_max:
        stray = with_call(missed, (number, worker.token))
        yield Step((WORKERS[index], "waits for", name, "no longer"), stray, fault=True)


def other_half(state: State, index: int, rules: Rules) -> Iterator[Step[State]]:
    """Without one transaction, the consumer may die between its two commits."""
    worker = state.workers[index]
    name, delivery = DESTINATIONS[worker.delivery], state.deliveries[worker.delivery]
    missed = with_worker(state, index, worker._replace(at=At.FAILURE))
    yield Step((name, "dies before the other half"), missed, fault=True)
    heard = with_worker(state, index, worker._replace(at=At.RECEIPT))
    effects = min(2, delivery.effects + rules.receipt_first)
    whole = delivery._replace(receipt=True, effects=effects)
    yield Step((name, "commits the other half and answers"), with_delivery(heard, worker.delivery, whole))


def strays(state: State, call: Call, rules: Rules) -> Iterator[Step[State]]:
    """A call that outlived its worker arrives, or never does."""
    number, token = call
    delivery = state.deliveries[number]
    gone = without_call(state, call)
    alarm = _unknown_attempt(delivery, token)
    received = with_delivery(gone, number, _received(delivery, rules))
    yield Step((DESTINATIONS[number], "receives a call that nobody waits for"), received, fault=True, alarm=alarm)
    yield Step(("a call to", DESTINATIONS[number], "that nobody waits for is lost"), gone, fault=True)


def _received(delivery: Delivery, rules: Rules) -> Delivery:
    """The inbox's transaction: receipt and effect, unless the receipt is there already."""
    if delivery.receipt and rules.inbox:
        return delivery
    return delivery._replace(receipt=True, effects=min(2, delivery.effects + 1))


def _half(delivery: Delivery, rules: Rules) -> Delivery | None:
    if delivery.receipt or not (rules.effect_first or rules.receipt_first):
        return None
    if rules.receipt_first:
        return delivery._replace(receipt=True)
    return delivery._replace(effects=min(2, delivery.effects + 1))


def _unknown_attempt(delivery: Delivery, token: int) -> str | None:
    if any(known == token for known, _ in delivery.attempts):
        return None
    return "a consumer is called only for an attempt whose start is committed"
