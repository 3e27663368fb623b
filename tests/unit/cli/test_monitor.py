"""The dispatcher's monitor: alive means progress, and metrics come in the Prometheus format."""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Sequence
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from seapost.cli.monitor import liveness, monitoring
from seapost.dispatcher.pulse import Turn
from seapost.model.errors import InvalidSetting
from seapost.telemetry import metrics

TURNING = Turn("billing/1", 0.5, 15.0)
RESTING = Turn("billing/2", 900.0, math.inf)
HANGING = Turn("renew", 40.0, 16.0)


def _get(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    request = Request(f"http://127.0.0.1:{port}{path}", method=method)
    try:
        with urlopen(request, timeout=10) as response:  # noqa: S310 - as above
            return response.status, response.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.mark.req("MET-05")
@pytest.mark.parametrize(("turns", "status"), [([TURNING, RESTING], 200), ([TURNING, HANGING], 503), ([], 200)])
def test_alive_means_that_every_loop_turns(turns: Sequence[Turn], status: int) -> None:
    """One overdue loop makes the process not alive, whatever the others do; the answer names it."""
    with monitoring("127.0.0.1", 0, lambda: turns) as port:
        found, body = _get(port, "/livez")
    document = json.loads(body)
    assert found == status
    assert document["hanging"] == [turn.name for turn in turns if turn.overdue]
    assert [loop["name"] for loop in document["loops"]] == [turn.name for turn in turns]


def test_a_resting_loop_owes_no_sign_of_life() -> None:
    """A limit without end is null, not a number that JSON does not have."""
    alive, body = liveness([RESTING])
    assert alive
    assert json.loads(body)["loops"][0]["limitSeconds"] is None


@pytest.mark.req("MET-05")
def test_metrics_carry_the_release_and_part() -> None:
    """A scrape finds which release runs here as what."""
    metrics.worker("dispatcher", region="test")
    with monitoring("127.0.0.1", 0, list) as port:
        status, body = _get(port, "/metrics")
    assert status == 200
    assert b"seapost_" in body
    assert b'part="dispatcher"' in body


def test_nothing_else_answers() -> None:
    """Other paths and methods are refused without doing anything."""
    with monitoring("127.0.0.1", 0, list) as port:
        assert _get(port, "/")[0] == 404
        assert _get(port, "/livez", "POST")[0] == 405
        assert _get(port, "/../../etc/passwd")[0] == 404


def test_a_slow_client_holds_nobody_up() -> None:
    """A client that says nothing does not keep the next one waiting."""
    with monitoring("127.0.0.1", 0, list) as port, socket.create_connection(("127.0.0.1", port)):
        assert _get(port, "/livez")[0] == 200


def test_a_taken_port_is_a_setting_to_change() -> None:
    """An address that cannot be listened on is told as the setting it comes from."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidSetting, match=r"monitor\.port"), monitoring("127.0.0.1", port, list):
            pass
