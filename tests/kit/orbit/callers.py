"""Callers of the HTTP interface: credentials made in the database, requests over a real server.

http_scene.caller("events:manage").post("/v1/event-subscriptions", {"name": "a", "queue": "billing"})
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import pytest
from psycopg import Connection

from orbit.access.token import new_token
from orbit.model.states import Action
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.orbit.database import new_orbit_database
from tests.kit.orbit.server import Serving, serving

NAMESPACE: Final = "acme"
APPLICATION: Final = "shop"
QUEUES: Final = ("billing", "shipping")
TASK_ACTIONS: Final = tuple(str(action) for action in Action if action.startswith("tasks:"))
EVENT_ACTIONS: Final = tuple(str(action) for action in Action if action.startswith("events:"))
SUBSCRIPTIONS: Final = "/v1/event-subscriptions"
FRESH: Final = "(a fresh key)"


@dataclass(frozen=True, slots=True)
class Caller:
    """A credential and an HTTP client."""

    client: httpx.Client
    token: str = field(repr=False)
    credential_id: str = ""

    @property
    def sha256(self) -> bytes:
        """What the database knows of the token."""
        return hashlib.sha256(self.token.encode()).digest()

    def get(self, path: str, **query: Any) -> httpx.Response:
        """Send a GET."""
        return self.client.get(path, params=query or None, headers=self._headers())

    def post(self, path: str, body: dict[str, Any] | str | bytes, *, key: str | None = FRESH) -> httpx.Response:
        """Send a POST; a dictionary as JSON, text as it is. `key` None sends no idempotency key."""
        content = json.dumps(body) if isinstance(body, dict) else body
        headers = {"content-type": "application/json", **self._headers()}
        if key is not None:
            headers["idempotency-key"] = secrets.token_hex(8) if key == FRESH else key
        return self.client.post(path, content=content, headers=headers)

    def subscribe(self, name: str, **members: Any) -> dict[str, Any]:
        """Create a subscription and return it."""
        return created(self.post(SUBSCRIPTIONS, {"name": name, "queue": "billing", **members}))

    def submit(self, queue: str = "billing", **members: Any) -> dict[str, Any]:
        """Submit a task and return it."""
        return created(self.post("/v1/tasks", {"queue": queue, "input": {"order": 1}, **members}))

    def claim(self, queue: str = "billing", most: int = 1) -> list[dict[str, Any]]:
        """Claim tasks."""
        answer = self.post("/v1/worker/claims", {"queue": queue, "worker_id": "w-1", "max": most}, key=None)
        return done(answer)["items"]

    def confirm(self, claim: dict[str, Any], result: str = "null", outcome: str = "succeeded") -> httpx.Response:
        """Confirm a claimed attempt with a result of this exact text."""
        body = f'{{"lease_secret":"{claim["lease_secret"]}","outcome":"{outcome}","result":{result}}}'
        return self.post(f"/v1/worker/attempts/{claim['attempt_id']}/result", body, key=None)

    def finish(self, queue: str = "billing", result: str = "null", outcome: str = "succeeded") -> dict[str, Any]:
        """Submit, claim and confirm one task; returns the receipt."""
        _ = self.submit(queue)
        return done(self.confirm(self.claim(queue)[0], result, outcome))

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}


def created(answer: httpx.Response) -> dict[str, Any]:
    """The body of a 201."""
    assert answer.status_code == httpx.codes.CREATED, answer.text
    return answer.json()


def done(answer: httpx.Response) -> dict[str, Any]:
    """The body of a 200."""
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


def code_of(answer: httpx.Response) -> str:
    """The code of a problem that is one, down to its members."""
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (problem["status"], problem["type"]) == (answer.status_code, f"urn:orbit:problem:{problem['code']}")
    assert problem["request_id"] == answer.headers["orbit-request-id"]
    assert problem["instance"] == answer.request.url.raw_path.partition(b"?")[0].decode()
    return problem["code"]


@dataclass(frozen=True, slots=True)
class HttpScene:
    """A server, and the operator's hand in its database."""

    base_url: str
    connection: Connection
    client: httpx.Client

    def caller(
        self,
        *actions: str,
        queues: Sequence[str] = QUEUES,
        all_queues: bool = False,
        expires_in_seconds: int | None = None,
        application: str = APPLICATION,
        namespace: str = NAMESPACE,
    ) -> Caller:
        """Issue a credential; without actions it may do everything."""
        token = new_token()
        names = None if all_queues else list(queues)
        arguments = (
            namespace,
            application,
            f"c-{secrets.token_hex(4)}",
            hashlib.sha256(token.encode()).digest(),
            list(actions or (*TASK_ACTIONS, *EVENT_ACTIONS)),
            all_queues,
            names,
            expires_in_seconds,
        )
        row = self.connection.execute(
            "select orbit.credential_issue_v1(%s, %s, %s, %s, %s, %s, %s, %s)", arguments
        ).fetchone()
        assert row is not None
        return Caller(self.client, token, json.loads(row[0])["credential_id"])

    def add_application(self, namespace: str, application: str, queues: Sequence[str] = QUEUES) -> None:
        """Make a namespace, an application and queues, with a credential that nobody knows."""
        digest = secrets.token_bytes(32)
        _ = self.connection.execute(
            "select orbit.access_bootstrap_v1(%s, %s, %s, 'first', %s, array['tasks:read'])",
            (namespace, application, list(queues), digest),
        )

    def claim_deliveries(self, caller: Caller, subscription_id: str, most: int = 32) -> list[str]:
        """Lease deliveries as a consumer would; returns their ids in order of sequence."""
        digests = [secrets.token_bytes(32) for _ in range(most)]
        rows = self.connection.execute(
            "select delivery_id from orbit.delivery_claim_v1(%s, %s, 'conn_test', %s, %s, %s, null, null, null)"
            " where delivery_id is not null order by event_sequence",
            (caller.sha256, subscription_id, most, most, digests),
        ).fetchall()
        return [row[0] for row in rows]

    def change_guarded(self, statement: str, arguments: Sequence[object] = ()) -> None:
        """Change rows past the triggers, as only time or damage could."""
        with self.connection.transaction():
            _ = self.connection.execute("set local session_replication_role = replica")
            changed = self.connection.execute(statement.encode(), arguments)
            assert changed.rowcount > 0

    def let_leases_run_out(self) -> None:
        """Put the deadline of every lease of a delivery into the past."""
        self.change_guarded(
            "update orbit.event_deliveries set lease_expires_at = clock_timestamp() - interval '1 second'"
            " where state = 'LEASED'"
        )

    def exhausted_delivery(self, caller: Caller, subscription_id: str) -> dict[str, Any]:
        """A delivery whose budget of one is used up: `EXPIRED`."""
        (delivery_id,) = self.claim_deliveries(caller, subscription_id, 1)
        self.let_leases_run_out()
        assert self.claim_deliveries(caller, subscription_id, 1) != [delivery_id]
        return done(caller.get(f"{SUBSCRIPTIONS}/{subscription_id}/deliveries/{delivery_id}"))


@contextmanager
def open_http_scene(server_url: str, database: TestDatabase) -> Generator[HttpScene]:
    """A scene over a server that runs: the namespace `acme` with the application `shop` and two queues."""
    with database.connect() as connection, httpx.Client(base_url=server_url, timeout=30) as client:
        connection.autocommit = True
        scene = HttpScene(server_url, connection, client)
        scene.add_application(NAMESPACE, APPLICATION)
        yield scene


@pytest.fixture
def http_scene(orbit_server: Serving, orbit_database: TestDatabase) -> Iterator[HttpScene]:
    """Give a scene over the server of the test."""
    with open_http_scene(orbit_server.base_url, orbit_database) as opened:
        yield opened


@pytest.fixture(scope="module")
def one_scene(database_server: DatabaseServer) -> Iterator[HttpScene]:
    """Give one scene to all tests of a module that leave nothing behind which another could meet."""
    database = new_orbit_database(database_server)
    with serving(database.dsn) as server, open_http_scene(server.base_url, database) as opened:
        yield opened
    database_server.drop(database)
