"""The conformance suite of `orbit.events.v1` against the server of this checkout."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orbit.model.states import Action
from tests.kit.database import DatabaseServer
from tests.kit.orbit.database import new_orbit_database
from tests.kit.orbit.scene import QUEUE, Scene, opened_scene
from tests.kit.orbit.server import Serving, serving
from tests.orbit.conformance import exchanges
from tests.orbit.conformance.registry import EXCHANGES, Exchange
from tests.orbit.conformance.world import world

EXCHANGES_MIN = 60


@pytest.fixture(scope="module")
def running(database_server: DatabaseServer) -> Iterator[tuple[Serving, Scene]]:
    """One server and one namespace for all exchanges; each makes its own subscription."""
    database = new_orbit_database(database_server)
    with serving(database.dsn) as server, opened_scene(database) as scene:
        yield server, scene
    database_server.drop(database)


@pytest.fixture(scope="module")
def tokens(running: tuple[Serving, Scene]) -> dict[str, str]:
    """Give the three tokens that the suite needs."""
    _, scene = running
    idle = [action for action in Action if action is not Action.EVENTS_CONSUME]
    return {
        "token": scene.issue("one").token,
        "foreign_token": scene.issue("other").token,
        "idle_token": scene.issue("idle", actions=idle).token,
    }


@pytest.fixture(scope="module")
def shared() -> dict[str, str]:
    """Give what the exchanges share."""
    return {}


def test_the_suite_is_complete() -> None:
    """Every module is registered, and there are as many exchanges as were asked for."""
    assert len(exchanges.__all__) == 6
    assert len(EXCHANGES) >= EXCHANGES_MIN


def _marked(exchange: Exchange) -> object:
    ids = [name if name.startswith("F") else f"orbit:{name}" for name in exchange.requirements]
    return pytest.param(exchange, id=exchange.name, marks=pytest.mark.req(*ids))


@pytest.mark.parametrize("exchange", [_marked(exchange) for exchange in EXCHANGES.values()])
async def test_the_server_passes_an_exchange(
    exchange: Exchange, running: tuple[Serving, Scene], tokens: dict[str, str], shared: dict[str, str]
) -> None:
    """The exchange's own name and docstring say what is proved."""
    server, _ = running
    async with world(server.base_url, queue=QUEUE, shared=shared, **tokens) as there:
        await exchange.play(there)
