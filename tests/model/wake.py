"""The world of sleep and wake: appends that commit late, dispatchers that sleep, notifications that get lost.

The protocol of `seapost/dispatcher/wake.py` and the low-water hint, for one destination. An event gets its time when
its append begins and is seen when that commits, so one may commit below the hint of a dispatcher that has moved on.
What a claim finds is done at once here; what becomes of it is the world of deliveries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from tests.model.explore import Step

DISPATCHERS: Final = ("ann", "bob")


class Stage(IntEnum):
    """How far an event is; its position in the state is its time."""

    UNBORN = 0
    BEGUN = 1
    QUIET = 2
    LOUD = 3
    READY = 4
    DONE = 5


class Dispatcher(NamedTuple):
    """What one dispatcher of the destination knows.

    Attributes:
        waits: for a notification or its timer.
        declared: it has declared sleep on its listening session.
        connected: it has a listening session.
        nudged: a notification has arrived and is not used yet.
        sweep: its next claim ignores the hint.
        low: the hint, the time of the last event it claimed.
    """

    waits: bool = False
    declared: bool = False
    connected: bool = True
    nudged: bool = False
    sweep: bool = True
    low: int = 0


class State(NamedTuple):
    """The events in the order of their times, and the dispatchers."""

    events: tuple[Stage, ...]
    dispatchers: tuple[Dispatcher, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What keeps work from waiting for ever; each can be taken away."""

    polls: bool = True
    sweeps: bool = True


class WakeWorld:
    """Events of one destination and the dispatchers that look for them."""

    def __init__(self, rules: Rules | None = None, *, events: int = 3, dispatchers: int = 2) -> None:
        self.rules = rules or Rules()
        self._events = events
        self._dispatchers = dispatchers
        self.name = f"sleep and wake: {events} events, {dispatchers} dispatchers"

    def start(self) -> State:
        """Nothing has been appended."""
        return State((Stage.UNBORN,) * self._events, (Dispatcher(),) * self._dispatchers)

    def steps(self, state: State) -> Iterator[Step[State]]:
        """Every step of producers and dispatchers."""
        for number, stage in enumerate(state.events):
            yield from self._append(state, number, stage)
        for index, dispatcher in enumerate(state.dispatchers):
            yield from self._dispatch(state, index, dispatcher)
            yield from self._mishaps(state, index, dispatcher)

    def _append(self, state: State, number: int, stage: Stage) -> Iterator[Step[State]]:
        name = f"event {number + 1}"
        if stage is Stage.UNBORN and (number == 0 or state.events[number - 1] is not Stage.UNBORN):
            yield Step((name, "is inserted, not committed"), _at(state, number, Stage.BEGUN))
        elif stage is Stage.BEGUN:
            loud = any(dispatcher.declared for dispatcher in state.dispatchers)
            sees = "sees a sleeper" if loud else "sees no sleeper"
            yield Step(("the append of", name, sees), _at(state, number, Stage.LOUD if loud else Stage.QUIET))
        elif stage in {Stage.QUIET, Stage.LOUD}:
            ready = _at(state, number, Stage.READY)
            told = ready._replace(dispatchers=tuple(d._replace(nudged=d.connected) for d in ready.dispatchers))
            if stage is Stage.LOUD:
                yield Step((name, "commits and notifies"), told)
            yield Step((name, "commits"), ready, fault=stage is Stage.LOUD)
            yield Step((name, "rolls back"), _at(state, number, Stage.DONE), fault=True)

    def _dispatch(self, state: State, index: int, dispatcher: Dispatcher) -> Iterator[Step[State]]:
        name = DISPATCHERS[index]
        awake = dispatcher._replace(waits=False, nudged=False)
        if dispatcher.waits:
            if dispatcher.nudged:
                yield Step((name, "is woken by a notification"), _with(state, index, awake))
            if self.rules.polls:
                yield Step((name, "is woken by its timer"), _with(state, index, awake))
        else:
            yield self._claim(state, index, dispatcher)
        if self.rules.sweeps and not dispatcher.sweep:
            yield Step((name, "owes a sweep"), _with(state, index, dispatcher._replace(sweep=True)))

    @staticmethod
    def _claim(state: State, index: int, dispatcher: Dispatcher) -> Step[State]:
        name = DISPATCHERS[index]
        how = "sweeps" if dispatcher.sweep else "claims above the hint"
        for number, stage in enumerate(state.events):
            if stage is Stage.READY and (dispatcher.sweep or number >= dispatcher.low):
                done = _at(state, number, Stage.DONE)
                busy = dispatcher._replace(declared=False, sweep=False, low=number)
                return Step((name, how, f"and gets event {number + 1}"), _with(done, index, busy))
        rested = dispatcher._replace(sweep=False)
        taken = any(other.declared for other in state.dispatchers)
        if dispatcher.connected and not taken:
            return Step((name, how, "in vain and declares sleep"), _with(state, index, rested._replace(declared=True)))
        return Step((name, how, "in vain and waits"), _with(state, index, rested._replace(waits=True)))

    @staticmethod
    def _mishaps(state: State, index: int, dispatcher: Dispatcher) -> Iterator[Step[State]]:
        name = DISPATCHERS[index]
        if dispatcher.connected:
            lost = dispatcher._replace(connected=False, declared=False, nudged=False)
            yield Step((name, "loses its listening session"), _with(state, index, lost), fault=True)
        else:
            back = dispatcher._replace(connected=True, sweep=True)
            yield Step((name, "listens again"), _with(state, index, back), fault=True)
        yield Step((name, "dies and starts again"), _with(state, index, Dispatcher()), fault=True)

    # The world ----------------------------------------------------------------------------------------------

    def canonical(self, state: State) -> State:
        """One state for all that differ in the names of dispatchers only."""
        return State(state.events, tuple(sorted(state.dispatchers)))

    def broken(self, state: State) -> str | None:
        """Only one dispatcher may have declared sleep: the declaration is an exclusive lock."""
        declared = sum(dispatcher.declared for dispatcher in state.dispatchers)
        return "one dispatcher at most has declared sleep" if declared > 1 else None

    def rests(self, state: State) -> bool:
        """Whether no committed event waits."""
        return Stage.READY not in state.events

    def describe(self, state: State) -> str:
        """The state in words."""
        events = [f"event {number} is {stage.name.lower()}" for number, stage in enumerate(state.events, 1)]
        for index, dispatcher in enumerate(state.dispatchers):
            does = "waits" if dispatcher.waits else "is about to claim"
            hint = f", hint at event {dispatcher.low + 1}"
            events.append(f"{DISPATCHERS[index]} {does}{', sweeps next' if dispatcher.sweep else hint}")
        return "; ".join(events)


def _at(state: State, number: int, stage: Stage) -> State:
    events = state.events
    return State((*events[:number], stage, *events[number + 1 :]), state.dispatchers)


def _with(state: State, index: int, dispatcher: Dispatcher) -> State:
    dispatchers = state.dispatchers
    return State(state.events, (*dispatchers[:index], dispatcher, *dispatchers[index + 1 :]))
