"""The server's process: health, readiness, and how it stops (OPS-03, OPS-05)."""

from __future__ import annotations

import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import LiteralString

import httpx
import pytest

from orbit.server.http.app import create_app
from orbit.server.services import open_services
from seapost.model.errors import InvalidSetting
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually, eventually_row
from tests.kit.orbit.callers import SUBSCRIPTIONS, HttpScene, code_of, open_http_scene
from tests.kit.orbit.database import install_orbit
from tests.kit.orbit.server import Serving, serving, serving_process


def codes(server: Serving, *paths: str) -> list[str]:
    """What the paths answer: OK, or the code of the problem."""
    answers = [httpx.get(server.base_url + path) for path in paths]
    return [code_of(answer) if answer.is_error else "OK" for answer in answers]


@pytest.mark.req("orbit:OPS-05", "orbit:T-M04", "orbit:JRN-16", "orbit:MIG-09")
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("update orbit.schema_migration set checksum = repeat('0', 64) where number = 3", "0003"),
        ("update orbit.schema_migration set finished_at = null where number = 13", "0013"),
        ("delete from orbit.schema_migration where number = 13", "0013"),
        ("update orbit.schema_migration set number = 99 where number = 13", "0099"),
        ("delete from orbit.event_stream_locks", "has no stream row"),
        ("drop function orbit.task_get_v1(bytea, text)", "task_get_v1"),
    ],
    ids=["checksum", "dirty", "missing", "newer", "stream row", "function"],
)
def test_nothing_is_served_from_a_database_that_is_not_as_this_code_needs_it(
    orbit_database: TestDatabase, damage: LiteralString, reason: str
) -> None:
    """Health is still well; readiness gives the reason, and every request of `/v1` says no more than not ready."""
    with orbit_database.connect(autocommit=True) as connection:
        _ = connection.execute(
            "select orbit.access_bootstrap_v1('a', 'b', array['q'], 'c', sha256(''), array['tasks:read'])"
        )
        _ = connection.execute("set session_replication_role = replica")
        _ = connection.execute(damage)
    with serving(orbit_database.dsn) as server:
        assert codes(server, "/healthz", "/readyz", SUBSCRIPTIONS, "/v1/nowhere", "/nowhere") == [
            "OK", "SERVICE_NOT_READY", "SERVICE_NOT_READY", "SERVICE_NOT_READY", "ROUTE_NOT_FOUND",
        ]  # fmt: skip
        answer = httpx.get(server.base_url + "/readyz")
        assert reason in "".join(answer.json()["reasons"])
        assert answer.headers["retry-after"] == "2"
        assert "reasons" not in httpx.get(server.base_url + SUBSCRIPTIONS).json()


@pytest.mark.req("orbit:OPS-05", "orbit:MIG-09")
def test_a_database_that_breaks_while_it_is_served_is_noticed_within_two_seconds(
    http_scene: HttpScene, orbit_server: Serving
) -> None:
    """And one that is mended is served again, by the same process."""
    caller = http_scene.caller()
    assert caller.get(SUBSCRIPTIONS).status_code == 200
    for dirty, code in ((True, 503), (False, 200)):
        changed = "update orbit.schema_migration set finished_at = case when not %s then now() end where number = 13"
        http_scene.change_guarded(changed, (dirty,))
        since = monotonic()
        eventually(lambda code=code: caller.get(SUBSCRIPTIONS).status_code == code, what=f"status {code}")
        assert monotonic() - since < 3
    assert codes(orbit_server, "/readyz") == ["OK"]


@pytest.mark.req("orbit:OPS-05")
def test_a_server_starts_without_a_schema_and_serves_once_it_is_there(orbit_empty_database: TestDatabase) -> None:
    """Its order of start with the migration does not matter."""
    with serving(orbit_empty_database.dsn) as server:
        assert codes(server, "/healthz", "/readyz", SUBSCRIPTIONS) == ["OK", "SERVICE_NOT_READY", "SERVICE_NOT_READY"]
        _ = install_orbit(orbit_empty_database.dsn)
        eventually(lambda: codes(server, "/readyz") == ["OK"], what="readiness")
        assert codes(server, SUBSCRIPTIONS) == ["UNAUTHENTICATED"]


@pytest.mark.req("orbit:OPS-05")
def test_an_unreachable_database_is_a_reason_and_no_failure() -> None:
    """The process lives on; what the driver says does not leave."""
    with serving("postgresql://nobody:hush@127.0.0.1:1/none") as server:
        assert codes(server, "/healthz", "/readyz", SUBSCRIPTIONS) == ["OK", "SERVICE_NOT_READY", "SERVICE_NOT_READY"]
        assert httpx.get(server.base_url + "/readyz").json()["reasons"] == ["the database cannot be reached"]


@pytest.mark.req("orbit:OPS-03", "orbit:MIG-08")
def test_the_servers_sessions_are_called_orbit_server(http_scene: HttpScene) -> None:
    """That is how a migration knows that a writer is active."""
    _ = http_scene.caller().get(SUBSCRIPTIONS)
    query: LiteralString = (
        "select 1 from pg_stat_activity where application_name = 'orbit-server' and datname = current_database()"
    )
    _ = eventually_row(http_scene.connection, query)


@pytest.mark.req("orbit:OPS-03", "orbit:WSS-14")
def test_the_first_order_lets_a_running_request_end_and_takes_no_new_one(
    http_scene: HttpScene, orbit_server: Serving
) -> None:
    """The request waits for a lock when the order comes; it is answered, and the socket is closed to others."""
    caller = http_scene.caller()
    path = f"{SUBSCRIPTIONS}/{caller.subscribe('a')['subscription_id']}"
    with ThreadPoolExecutor(1) as thread:
        with http_scene.connection.transaction():
            _ = http_scene.connection.execute("select 1 from orbit.event_subscriptions for update")
            running = thread.submit(caller.post, f"{path}/pause", {"expected_revision": 1})
            query: LiteralString = (
                "select 1 from pg_stat_activity where application_name = 'orbit-server' and wait_event_type = 'Lock'"
                " and datname = current_database()"
            )
            eventually(lambda: http_scene.connection.execute(query).fetchone(), what="the request's wait")
            orbit_server.stop()
            eventually(lambda: not _listens(orbit_server.base_url), what="the end of listening")
        assert running.result(30).json()["status"] == "PAUSED"


@pytest.mark.req("orbit:OPS-03", "orbit:API-12")
async def test_a_request_that_comes_after_the_order_to_stop_is_sent_elsewhere() -> None:
    """On a connection that is open still: it is told to come back, and the connection is closed."""
    async with open_services("postgresql://nobody@127.0.0.1:1/none") as services:
        services.stopping = True
        transport = httpx.ASGITransport(create_app(services))
        async with httpx.AsyncClient(transport=transport, base_url="http://orbit") as client:
            answer = await client.get(SUBSCRIPTIONS)
            alive = await client.get("/healthz")
    assert (answer.status_code, code_of(answer), alive.status_code) == (503, "SERVER_SHUTTING_DOWN", 200)
    assert (answer.headers["retry-after"], answer.headers["connection"]) == ("2", "close")


@pytest.mark.req("orbit:OPS-03")
def test_an_address_in_use_is_told_in_one_sentence() -> None:
    """No traceback for a mistake of the operator."""
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(InvalidSetting, match="cannot be listened on"),
        serving("postgresql://nobody@127.0.0.1:1/none", port=taken.getsockname()[1]),
    ):
        pass


@pytest.mark.req("orbit:OPS-03", "orbit:TSK-12")
def test_a_process_serves_recovers_lost_attempts_and_ends_on_sigterm(orbit_database: TestDatabase) -> None:
    """Nobody claims from the queue, and still a lost attempt comes back; the process stops by itself when told."""
    with serving(orbit_database.dsn) as first, open_http_scene(first.base_url, orbit_database) as scene:
        caller = scene.caller()
        task = caller.submit(effect_policy="safe")
        assert caller.claim()
        scene.change_guarded("update orbit.task_attempts set lease_expires_at = clock_timestamp()")
    with serving_process(orbit_database.dsn) as server, orbit_database.connect(autocommit=True) as connection:
        query: LiteralString = "select 1 from orbit.events where task_id = %s and type = 'task.requeued'"
        _ = eventually_row(connection, query, (task["task_id"],))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0


def _listens(base_url: str) -> bool:
    port = int(base_url.rpartition(":")[2])
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
