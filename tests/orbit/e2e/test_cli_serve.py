"""`orbit serve` as a process: it answers, it is seen as a write node, and it stops in order (OPS-03, OPS-05)."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx
import psycopg
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from orbit.cli import main
from orbit.cli.exit_codes import ExitCode
from tests.kit.commands import ORBIT, Running
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually


@pytest.mark.req("orbit:OPS-03", "orbit:OPS-05", "orbit:MIG-05", "orbit:MIG-08", "orbit:T-M03", "F85")
def test_serve_answers_is_seen_as_a_write_node_and_stops_in_order(
    orbit_database: TestDatabase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ready on a free port, its sessions named `orbit-server`, so `migrate up` refuses; SIGTERM ends it with 0."""
    variables = {"ORBIT_DATABASE_URL": orbit_database.dsn}
    with Running(
        "serve", "--port", "0", "--role", "orbit_server", folder=tmp_path, env=variables, program=ORBIT
    ) as run:
        address = run.logged("orbit.server_started")["address"]
        assert address.startswith("http://127.0.0.1:")
        assert httpx.get(f"{address}/healthz").status_code == httpx.codes.OK
        assert eventually(lambda: httpx.get(f"{address}/readyz").status_code == httpx.codes.OK, what="readiness")
        with psycopg.connect(orbit_database.dsn) as connection:
            names = connection.execute(
                "select distinct application_name from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            ).fetchall()
        assert ("orbit-server",) in names
        assert all(name.startswith("orbit-server") for (name,) in names)
        refused = main.run(["migrate", "up", "--dsn", orbit_database.dsn])
        assert refused is ExitCode.ACTIVE_WRITERS
        assert "orbit-server" in capsys.readouterr().err
        run.signal(signal.SIGTERM)
        done = run.finish()
    assert (done.code, done.stdout) == (0, "stopped\n")
    assert all(json.loads(line)["event"] for line in done.stderr.splitlines())
    assert main.run(["migrate", "up", "--dsn", orbit_database.dsn]) is ExitCode.DONE


@pytest.mark.req("orbit:OPS-03", "F85")
def test_serve_refuses_an_address_that_is_taken(orbit_database: TestDatabase, tmp_path: Path) -> None:
    """One line and the exit code of a setting; the connection string is not shown."""
    with Running(
        "serve", "--port", "0", folder=tmp_path, env={"ORBIT_DATABASE_URL": orbit_database.dsn}, program=ORBIT
    ) as first:
        port = first.logged("orbit.server_started")["address"].rsplit(":", 1)[1]
        with Running("serve", "--port", port, "--dsn", orbit_database.dsn, folder=tmp_path, program=ORBIT) as second:
            done = second.finish()
    assert done.code == ExitCode.SETTING
    assert done.stderr.startswith(f"orbit: port: 127.0.0.1:{port} cannot be listened on")
    assert orbit_database.name not in done.stderr


@pytest.mark.req("F87", "orbit:OPS-03")
def test_serve_lets_a_page_of_a_named_origin_connect_and_no_other(orbit_database: TestDatabase, tmp_path: Path) -> None:
    """The handshake of a page is refused by its origin before anything else; the named origin gets to the token."""
    arguments = ("serve", "--port", "0", "--allow-origin", "https://console.example")
    variables = {"ORBIT_DATABASE_URL": orbit_database.dsn}
    with Running(*arguments, folder=tmp_path, env=variables, program=ORBIT) as run:
        address = run.logged("orbit.server_started")["address"]
        answers = {
            origin: _handshake(address, origin) for origin in ("https://console.example", "https://evil.example")
        }
    assert answers == {"https://console.example": 401, "https://evil.example": 403}


def _handshake(address: str, origin: str) -> int:
    """The status that a WebSocket handshake with an unknown token gets."""
    with pytest.raises(InvalidStatus) as refused:
        connect(
            f"{address.replace('http', 'ws', 1)}/v1/events/connect",
            subprotocols=[Subprotocol("orbit.events.v1")],
            additional_headers={"Authorization": "Bearer orbit_" + "x" * 43},
            origin=Origin(origin),
        )
    return refused.value.response.status_code
