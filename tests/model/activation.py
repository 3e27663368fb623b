"""The world of activation: a new delivery set becomes active while appends are in flight.

One lock orders them: appends take it shared to the end of their transaction, the activation takes it exclusively. A
producer in REPEATABLE READ reads an old snapshot even behind the lock; it has to touch the version's row, which makes
the server refuse it (40001) when the row has changed since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from tests.model.explore import Step

PRODUCERS: Final = ("ann", "bob", "cid (repeatable read)")
REPEATABLE: Final = 2
OLD, NEW = 1, 2


class At(IntEnum):
    """Where a producer is."""

    OUT = 0
    BEGUN = 1
    LOCKED = 2
    FROZEN = 3
    COMMITTED = 4


class Producer(NamedTuple):
    """A producer's transaction.

    Attributes:
        at: where it is.
        version: what its snapshot shows, then what its event is frozen against; 0 when nothing yet.
    """

    at: At = At.OUT
    version: int = 0


class State(NamedTuple):
    """The active version, whether the activation holds its lock, and the producers."""

    active: int
    activating: bool
    producers: tuple[Producer, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What keeps appends and activation apart; each can be taken away."""

    append_locks: bool = True
    snapshot_is_checked: bool = True


class ActivationWorld:
    """Two ordinary producers, one in REPEATABLE READ, and one activation."""

    name = "activation: 3 producers, one of them in REPEATABLE READ"

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()

    def start(self) -> State:
        """The old version is active."""
        return State(OLD, activating=False, producers=(Producer(),) * len(PRODUCERS))

    def steps(self, state: State) -> Iterator[Step[State]]:
        """Every step of the producers and of the activation."""
        for index, producer in enumerate(state.producers):
            yield from self._produce(state, index, producer)
        holders = any(producer.at in {At.LOCKED, At.FROZEN} for producer in state.producers)
        if state.activating:
            yield Step(("the activation commits",), state._replace(active=NEW, activating=False))
            yield Step(("the activation rolls back",), state._replace(activating=False), fault=True)
        elif state.active == OLD and not (holders and self.rules.append_locks):
            yield Step(("the activation has the lock and retires the old version",), state._replace(activating=True))

    def _produce(self, state: State, index: int, producer: Producer) -> Iterator[Step[State]]:
        name, repeatable = PRODUCERS[index], index == REPEATABLE
        if producer.at is At.OUT:
            seen = state.active if repeatable else 0
            words = "begins, and its snapshot is taken" if repeatable else "begins"
            yield Step((name, words), _with(state, index, Producer(At.BEGUN, seen)))
            return
        if producer.at is At.BEGUN and not (state.activating and self.rules.append_locks):
            yield Step((name, "has the lock, shared"), _with(state, index, producer._replace(at=At.LOCKED)))
        elif producer.at is At.LOCKED:
            read = producer.version if repeatable else state.active
            if repeatable and self.rules.snapshot_is_checked and read != state.active:
                yield Step((name, "is refused (40001) and starts again"), _with(state, index, Producer()))
            else:
                frozen = _with(state, index, Producer(At.FROZEN, read))
                yield Step((name, f"appends an event under version {read}"), frozen)
        elif producer.at is At.FROZEN:
            alarm = None if producer.version == state.active else "no event is frozen against a retired delivery set"
            yield Step((name, "commits"), _with(state, index, producer._replace(at=At.COMMITTED)), alarm=alarm)
        if producer.at is not At.COMMITTED:
            yield Step((name, "rolls back"), _with(state, index, Producer()), fault=True)

    # The world ----------------------------------------------------------------------------------------------

    def canonical(self, state: State) -> State:
        """The two ordinary producers have no names."""
        return state._replace(producers=(*sorted(state.producers[:REPEATABLE]), *state.producers[REPEATABLE:]))

    def broken(self, state: State) -> str | None:
        """While the activation holds its lock, no append does."""
        inside = any(producer.at in {At.LOCKED, At.FROZEN} for producer in state.producers)
        if state.activating and inside and self.rules.append_locks:
            return "an activation waits for every append in flight"
        return None

    def rests(self, state: State) -> bool:
        """Whether the new version is active and every event is stored."""
        return state.active == NEW and all(producer.at is At.COMMITTED for producer in state.producers)

    def describe(self, state: State) -> str:
        """The state in words."""
        parts = [f"version {state.active} is active"]
        for name, producer in zip(PRODUCERS, state.producers, strict=True):
            under = f" under version {producer.version}" if producer.at >= At.FROZEN else ""
            parts.append(f"{name} is {producer.at.name.lower()}{under}")
        return "; ".join(parts)


def _with(state: State, index: int, producer: Producer) -> State:
    producers = state.producers
    return state._replace(producers=(*producers[:index], producer, *producers[index + 1 :]))
