"""Names do not matter: what the exploration takes for one state behaves as one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from tests.model.delivery import DeliveryWorld
from tests.model.delivery_state import Rules, Size, State, canonical
from tests.model.explore import Step

EVERY = 7
"""All of them hold; one in so many is enough to notice a mistake."""

Outcome = tuple[State, bool, str | None]


def _states(world: DeliveryWorld) -> Iterator[State]:
    found = [canonical(world.start())]
    known = set(found)
    for state in found:
        yield state
        for step in world.steps(state):
            target = canonical(step.state)
            if target not in known:
                known.add(target)
                found.append(target)


def _swapped_workers(state: State) -> State:
    return state._replace(workers=state.workers[::-1])


def _swapped_deliveries(state: State) -> State:
    last = len(state.deliveries) - 1
    return state._replace(
        deliveries=state.deliveries[::-1],
        workers=tuple(w._replace(delivery=last - w.delivery) if w.token else w for w in state.workers),
        calls=tuple(sorted((last - number, token) for number, token in state.calls)),
    )


def _with_other_tokens(state: State) -> State:
    """Every token under another name, in the reverse order."""
    return state._replace(
        deliveries=tuple(
            d._replace(
                token=d.token and 20 - d.token,
                attempts=tuple(sorted((20 - token, finish) for token, finish in d.attempts)),
            )
            for d in state.deliveries
        ),
        workers=tuple(w._replace(token=w.token and 20 - w.token) for w in state.workers),
        calls=tuple(sorted((number, 20 - token) for number, token in state.calls)),
    )


def _outcomes(steps: Iterator[Step[State]]) -> set[Outcome]:
    return {(canonical(step.state), step.fault, step.alarm) for step in steps}


@pytest.mark.parametrize("size", [Size(owed=(1,)), Size(owed=(2,), calls=0)], ids=["strays", "siblings"])
def test_renamed_states_take_the_same_steps(size: Size) -> None:
    """With workers, destinations and tokens renamed, a state is the same one, and leads to the same ones."""
    world = DeliveryWorld(Rules(), size)
    for state in islice(_states(world), 0, None, EVERY):
        assert canonical(state) == state
        expected = _outcomes(world.steps(state))
        for renamed in (_swapped_workers(state), _swapped_deliveries(state), _with_other_tokens(state)):
            assert canonical(renamed) == state
            assert _outcomes(world.steps(renamed)) == expected
