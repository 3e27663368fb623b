"""The world of deliveries: workers that may stall or die at any point, a network that may lose answers, one inbox.

Authority: the database. Each step below is one committed transaction, or something that happens between two. Only an
acknowledgement takes two, because the look at its siblings and the commit are what the publication lock keeps
together. Time is no number: it may pass for a delivery at any moment, which makes a pending one due and lets a lease
expire.
Not in here: batches (a batch is one such step for each of its deliveries, in one transaction), suspects, lanes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.kit.transitions import (
    ACKNOWLEDGED,
    DUE,
    EXPIRED,
    HELD,
    LEASED,
    NOTHING,
    PROVEN,
    Facts,
    Refusal,
    Transition,
    Verb,
)
from tests.model import consumer, delivery_state
from tests.model.delivery_state import (
    DEAD,
    DESTINATIONS,
    IDLE,
    IN_TRANSACTION,
    OPEN,
    PLACE,
    WORKERS,
    At,
    Delivery,
    Rules,
    Size,
    State,
    Worker,
    event_of,
    finished,
    holds,
    new_token,
    siblings,
    status_of,
    with_call,
    with_delivery,
    with_finish,
    with_worker,
)
from tests.model.explore import Step


class DeliveryWorld:
    """Events with their mandatory deliveries, and the workers that may take them."""

    def __init__(self, rules: Rules | None = None, size: Size | None = None) -> None:
        self.rules = rules or Rules()
        self.size = size or Size()
        events = " and ".join(
            f"{owed} of {which}" for owed, which in zip(self.size.owed, ("one event", "another"), strict=False)
        )
        self.name = f"deliveries: {events}, {self.size.workers} workers, calls astray: {self.size.calls}"

    def start(self) -> State:
        """Every event has been appended; everybody is idle."""
        owed = self.size.owed
        return State((Delivery(),) * sum(owed), (IDLE,) * self.size.workers, published=(0,) * len(owed), owed=owed)

    # Steps --------------------------------------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[Step[State]]:
        """Every step of everybody."""
        for index, worker in enumerate(state.workers):
            yield from self._steps_of(state, index, worker)
        for call in state.calls:
            yield from consumer.strays(state, call, self.rules)
        for index, delivery in enumerate(state.deliveries):
            if not delivery.time_up and delivery.places & 3:
                yield Step(
                    ("time passes for", DESTINATIONS[index]),
                    with_delivery(state, index, delivery._replace(time_up=True)),
                )
        if self.rules.recovery:
            yield from self._recover(state)

    def _steps_of(self, state: State, index: int, worker: Worker) -> Iterator[Step[State]]:
        at, name, to = worker.at, WORKERS[index], DESTINATIONS[worker.delivery]
        if at is At.DEAD:
            yield Step((name, "starts again"), with_worker(state, index, IDLE))
            return
        yield from self._crash(state, index, worker)
        if at is At.IDLE:
            yield from self._claim(state, index)
        elif at is At.CLAIMED or at is At.UNCOMMITTED:
            yield Step((name, "calls", to), with_worker(state, index, worker._replace(at=At.CALLING)))
            if at is At.CLAIMED:
                yield self._settle(state, index, Verb.RETRY, HELD, ("gives back",))
                yield from self._renew(state, index)
        elif at is At.CALLING:
            yield from self._renew(state, index)
            yield from consumer.answers(state, index, self.rules, self.size.calls)
        elif at is At.HALF:
            yield from consumer.other_half(state, index, self.rules)
        else:
            yield from self._ends(state, index, at)

    def _ends(self, state: State, index: int, at: At) -> Iterator[Step[State]]:
        """The call is over: settle as the answer says."""
        if at is At.RECEIPT:
            yield from self._acknowledge(state, index, PROVEN)
        elif at is At.EMPTY:
            yield from self._acknowledge(state, index, HELD)
        elif at is At.FAILURE:
            yield self._settle(state, index, Verb.RETRY, HELD, ("retries",))
            yield self._settle(state, index, Verb.QUARANTINE, HELD, ("has tried often enough and quarantines",))
        elif at is At.REJECTION:
            yield self._settle(state, index, Verb.QUARANTINE, HELD, ("quarantines",))
        else:
            yield self._commit(state, index)

    def _crash(self, state: State, index: int, worker: Worker) -> Iterator[Step[State]]:
        dead = with_worker(state, index, DEAD)
        yield Step((WORKERS[index], "dies"), dead, fault=True)
        if worker.at is At.CALLING and len(state.calls) < self.size.calls:
            stray = with_call(dead, (worker.delivery, worker.token))
            yield Step((WORKERS[index], "dies, its call goes on"), stray, fault=True)

    def _claim(self, state: State, index: int) -> Iterator[Step[State]]:
        for number, delivery in enumerate(state.deliveries):
            locked = any(w.at is At.UNCOMMITTED and w.delivery == number for w in state.workers)
            facts = DUE if delivery.time_up and not locked else NOTHING
            answer = self.rules.table.answer(status_of(delivery), Verb.CLAIM, facts)
            if not isinstance(answer, Transition):
                continue
            token = new_token(state, number)
            label = (WORKERS[index], "claims", DESTINATIONS[number])
            if not self.rules.claim_commits_first:
                yield Step(
                    (*label, "without committing"), with_worker(state, index, Worker(At.UNCOMMITTED, number, token))
                )
                continue
            leased = delivery._replace(
                places=PLACE[answer.target],
                token=token,
                time_up=False,
                attempts=tuple(sorted((*delivery.attempts, (token, OPEN)))),
            )
            yield Step(
                label, with_worker(with_delivery(state, number, leased), index, Worker(At.CLAIMED, number, token))
            )

    def _renew(self, state: State, index: int) -> Iterator[Step[State]]:
        worker = state.workers[index]
        delivery = state.deliveries[worker.delivery]
        mine = holds(delivery, worker)
        answer = self.rules.table.answer(status_of(delivery), Verb.RENEW, HELD if mine else NOTHING)
        if isinstance(answer, Transition) and (delivery.time_up or not mine):
            renewed = with_delivery(state, worker.delivery, delivery._replace(time_up=False))
            label = (WORKERS[index], "renews", DESTINATIONS[worker.delivery])
            yield Step(label, renewed, alarm=_stale(Verb.RENEW, mine=mine))

    def _settle(self, state: State, index: int, verb: Verb, facts: Facts, words: tuple[str, ...]) -> Step[State]:
        """One transaction that ends the attempt, or is refused; either way the worker is free."""
        worker = state.workers[index]
        delivery = state.deliveries[worker.delivery]
        mine = holds(delivery, worker)
        label = (WORKERS[index], *words, DESTINATIONS[worker.delivery])
        answer = self.rules.table.answer(status_of(delivery), verb, facts if mine else NOTHING)
        freed = with_worker(state, index, IDLE)
        if not isinstance(answer, Transition):
            if not self.rules.refusal_writes_nothing:
                line = self.rules.table.answer(LEASED, verb, facts)
                assert isinstance(line, Transition)
                freed = with_delivery(freed, worker.delivery, with_finish(delivery, line, worker.token))
            return Step((*label, f"({answer})"), freed)
        moved = finished(delivery, answer, worker.token)
        return Step(label, with_delivery(freed, worker.delivery, moved), alarm=_stale(verb, mine=mine))

    def _acknowledge(self, state: State, index: int, facts: Facts) -> Iterator[Step[State]]:
        """Take the publication lock, move the lease, look at the siblings; the commit is a step of its own."""
        worker = state.workers[index]
        delivery = state.deliveries[worker.delivery]
        event = event_of(state, worker.delivery)
        if self.rules.publication_lock and self._is_locked(state, event):
            return
        mine = holds(delivery, worker)
        label = (WORKERS[index], "acknowledges", DESTINATIONS[worker.delivery])
        answer = self.rules.table.answer(status_of(delivery), Verb.ACKNOWLEDGE, facts if mine else facts - HELD)
        if isinstance(answer, Transition):
            last = not self.rules.publication_looks or all(
                state.deliveries[number].places == PLACE[ACKNOWLEDGED]
                for number in siblings(state, event)
                if number != worker.delivery
            )
            at = At.PUBLISHING if last else At.ACKNOWLEDGING
            words = (*label, "and publishes," if last else "and does not publish,", "not committed yet")
            yield Step(
                words, with_worker(state, index, worker._replace(at=at)), alarm=_stale(Verb.ACKNOWLEDGE, mine=mine)
            )
        elif answer is Refusal.INVALID:
            yield Step((*label, "(invalid)"), with_worker(state, index, worker._replace(at=At.FAILURE)))
        else:
            yield Step((*label, f"({answer})"), with_worker(state, index, IDLE))

    @staticmethod
    def _is_locked(state: State, event: int) -> bool:
        return any(w.at in IN_TRANSACTION and event_of(state, w.delivery) == event for w in state.workers)

    def _commit(self, state: State, index: int) -> Step[State]:
        worker = state.workers[index]
        delivery = state.deliveries[worker.delivery]
        line = self.rules.table.answer(LEASED, Verb.ACKNOWLEDGE, PROVEN)
        assert isinstance(line, Transition)
        moved = finished(delivery, line, worker.token)
        freed = with_worker(with_delivery(state, worker.delivery, moved), index, IDLE)
        event = event_of(state, worker.delivery)
        published = tuple(
            min(2, times + (number == event and worker.at is At.PUBLISHING))
            for number, times in enumerate(state.published)
        )
        label = (WORKERS[index], "commits the acknowledgement of", DESTINATIONS[worker.delivery])
        return Step(label, freed._replace(published=published))

    # Recovery -----------------------------------------------------------------------------------------------

    def _recover(self, state: State) -> Iterator[Step[State]]:
        if all(worker.at is At.DEAD for worker in state.workers):
            return
        for number in state.recovering:
            delivery = state.deliveries[number]
            done = state._replace(recovering=())
            label = ("recovery ends the lease of", DESTINATIONS[number], "that it saw")
            alarm = None if delivery.time_up else "only an expired lease is recovered"
            if delivery.places == PLACE[LEASED]:
                yield Step(label, self._recovered(done, number, delivery), alarm=alarm)
        for number, delivery in enumerate(state.deliveries):
            locked = any(w.at in IN_TRANSACTION and w.delivery == number for w in state.workers)
            facts = EXPIRED if delivery.time_up and not locked else NOTHING
            answer = self.rules.table.answer(status_of(delivery), Verb.RECOVER, facts)
            if not isinstance(answer, Transition):
                continue
            alarm = None if delivery.time_up else "only an expired lease is recovered"
            if self.rules.recovery_is_one_statement:
                label = ("the lease of", DESTINATIONS[number], "is recovered")
                yield Step(label, self._recovered(state, number, delivery), alarm=alarm)
            elif not state.recovering:
                label = ("recovery sees the expired lease of", DESTINATIONS[number])
                yield Step(label, state._replace(recovering=(number,)))

    def _recovered(self, state: State, number: int, delivery: Delivery) -> State:
        line = self.rules.table.answer(LEASED, Verb.RECOVER, EXPIRED)
        assert isinstance(line, Transition)
        moved = finished(delivery, line, delivery.token)
        if not self.rules.recovery_takes_the_lease:
            moved = moved._replace(places=moved.places | PLACE[LEASED], token=delivery.token)
        if not self.rules.recovery_finishes:
            moved = moved._replace(attempts=delivery.attempts)
        return with_delivery(state, number, moved)

    # The world ----------------------------------------------------------------------------------------------

    def canonical(self, state: State) -> State:
        """One state for all that differ in names only."""
        return delivery_state.canonical(state)

    def broken(self, state: State) -> str | None:
        """The rule that a state breaks."""
        return delivery_state.broken(state)

    def rests(self, state: State) -> bool:
        """Whether every delivery has ended."""
        return delivery_state.rests(state)

    def describe(self, state: State) -> str:
        """The state in words."""
        return delivery_state.describe(state)


def _stale(verb: Verb, *, mine: bool) -> str | None:
    return None if mine else f"no stale word is believed: {verb}"
