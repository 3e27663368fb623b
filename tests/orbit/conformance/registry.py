"""The list of exchanges, filled by the modules of `exchanges`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.orbit.conformance.world import World

Play = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange.

    Attributes:
        name: unique; names the fact that is proved.
        requirements: ids of the specification.
        play: raises AssertionError when the server breaks the protocol.
    """

    name: str
    requirements: tuple[str, ...]
    play: Play


EXCHANGES: dict[str, Exchange] = {}


def exchange(*requirements: str) -> Callable[[Play], Play]:
    """Register an exchange under the name of its function."""

    def register(play: Play) -> Play:
        name = getattr(play, "__name__", "")
        assert name not in EXCHANGES, f"two exchanges are called {name}"
        EXCHANGES[name] = Exchange(name, requirements, play)
        return play

    return register
