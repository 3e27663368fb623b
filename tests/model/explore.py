"""Breadth-first exploration of every state of a world; the first violation comes with the shortest way to it.

Two kinds of rule are checked. Safety: no state and no step is broken. Liveness: from every state a state of rest can
be reached by ordinary steps alone, so that whatever has happened, work that waits can still be done once nothing goes
wrong any more. It is checked backwards, from the states of rest along the ordinary steps.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

StateT = TypeVar("StateT")

NONE = -1


class Step(NamedTuple, Generic[StateT]):
    """One step from a state.

    Attributes:
        label: words that name the step.
        state: where it leads.
        fault: something went wrong here (a crash, a loss, a refusal); liveness may not rely on it.
        alarm: the rule that the step itself breaks.
    """

    label: tuple[str, ...]
    state: StateT
    fault: bool = False
    alarm: str | None = None


class World(Protocol[StateT]):
    """What is explored."""

    @property
    def name(self) -> str:
        """What the world is about."""
        ...

    def start(self) -> StateT:
        """The first state."""
        ...

    def steps(self, state: StateT) -> Iterable[Step[StateT]]:
        """Every step that is possible in a state."""
        ...

    def canonical(self, state: StateT) -> StateT:
        """The same state for all that differ in names only."""
        ...

    def broken(self, state: StateT) -> str | None:
        """The rule that a state breaks."""
        ...

    def rests(self, state: StateT) -> bool:
        """Whether everything that was to be done is done."""
        ...

    def describe(self, state: StateT) -> str:
        """The state in words."""
        ...


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule, the steps that lead to it, and the state in which it shows."""

    rule: str
    steps: tuple[str, ...]
    state: str

    def __str__(self) -> str:
        width = len(str(len(self.steps)))
        lines = [f"  {number:>{width}}. {step}" for number, step in enumerate(self.steps, 1)]
        then = "\n        ".join(self.state.split("; "))
        return "\n".join([f"broken: {self.rule}", *lines, f"  then: {then}"])


@dataclass(frozen=True, slots=True)
class Exploration:
    """How much was seen, and the first violation, if there is one."""

    states: int
    transitions: int
    violation: Violation | None


def explore(world: World[StateT], *, states_max: int = 5_000_000) -> Exploration:
    """Visit every state, up to a limit that raises OverflowError, and judge it."""
    return _Explorer(world, states_max).run()


class _Explorer(Generic[StateT]):
    def __init__(self, world: World[StateT], states_max: int) -> None:
        self._world = world
        self._states_max = states_max
        self._states: list[StateT] = []
        self._numbers: dict[StateT, int] = {}  # by every name that a state has been met under
        self._parents = array("l")
        self._transitions = 0
        # Ordinary steps backwards, as linked lists: the last edge into a state, and for each edge its source and the
        # edge before it.
        self._last_edge = array("l")
        self._edge_source = array("l")
        self._edge_before = array("l")

    def run(self) -> Exploration:
        start = self._world.canonical(self._world.start())
        self._add(start, NONE)
        if rule := self._world.broken(start):
            return self._found(rule, 0, None)
        for number, state in enumerate(self._visit()):
            for step in self._world.steps(state):
                self._transitions += 1
                if step.alarm is not None:
                    return self._found(step.alarm, number, step)
                known = self._numbers.get(step.state)
                if known is None:
                    target = self._world.canonical(step.state)
                    known = self._numbers.get(target)
                    if known is None:
                        known = self._add(target, number)
                        if rule := self._world.broken(target):
                            return self._found(rule, number, step)
                    self._numbers[step.state] = known
                if not step.fault:
                    self._edge_source.append(number)
                    self._edge_before.append(self._last_edge[known])
                    self._last_edge[known] = len(self._edge_source) - 1
        stuck = self._first_stuck()
        if stuck is not None:
            return self._found("nothing is lost: from here no ordinary step leads to the end", stuck, None)
        return Exploration(len(self._states), self._transitions, None)

    def _visit(self) -> Iterator[StateT]:
        position = 0
        while position < len(self._states):
            yield self._states[position]
            position += 1

    def _add(self, state: StateT, parent: int) -> int:
        number = len(self._states)
        if number >= self._states_max:
            message = f"{self._world.name} has more than {self._states_max} states"
            raise OverflowError(message)
        self._states.append(state)
        self._numbers[state] = number
        self._parents.append(parent)
        self._last_edge.append(NONE)
        return number

    def _first_stuck(self) -> int | None:
        reached = bytearray(len(self._states))
        waiting = [number for number, state in enumerate(self._states) if self._world.rests(state)]
        for number in waiting:
            reached[number] = 1
        while waiting:
            edge = self._last_edge[waiting.pop()]
            while edge != NONE:
                source = self._edge_source[edge]
                if not reached[source]:
                    reached[source] = 1
                    waiting.append(source)
                edge = self._edge_before[edge]
        first = reached.find(0)
        return None if first < 0 else first

    def _found(self, rule: str, number: int, last: Step[StateT] | None) -> Exploration:
        """Walk to a state again, this time with the names as they are, so that the steps read as one story."""
        chain = [number]
        while self._parents[chain[-1]] != NONE:
            chain.append(self._parents[chain[-1]])
        state = self._world.start()
        labels: list[str] = []
        for following in reversed(chain[:-1]):
            wanted = self._states[following]
            step = next(s for s in self._world.steps(state) if self._world.canonical(s.state) == wanted)
            labels.append(" ".join(step.label))
            state = step.state
        if last is not None:
            target = self._world.canonical(last.state)
            step = next(
                s
                for s in self._world.steps(state)
                if s.alarm == last.alarm and self._world.canonical(s.state) == target
            )
            labels.append(" ".join(step.label))
            state = step.state
        violation = Violation(rule, tuple(labels), self._world.describe(state))
        return Exploration(len(self._states), self._transitions, violation)
