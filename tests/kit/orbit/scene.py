"""Builders over Orbit's real SQL functions: a namespace with credentials, tasks, results, subscriptions, deliveries.

Plain SQL over one autocommit session that may do everything: no room of Orbit stands between a test and the functions.
Errors are psycopg's own; `sqlstate` names them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg import sql

from orbit.access.token import new_secret, new_token
from orbit.model.states import Action, ResultType
from seapost.testing.databases import TestDatabase
from tests.kit.orbit.holders import Attempt, Claimed, Credential, Lease

__all__ = ["Attempt", "Claimed", "Credential", "Lease", "Scene", "opened_scene", "request_sha256"]

Row = tuple[Any, ...]

NAMESPACE: Final = "acme"
APPLICATION: Final = "shop"
QUEUE: Final = "orders"
ALL_ACTIONS: Final = tuple(Action)
CONNECTION: Final = "conn_" + "0" * 32


class Scene:
    """One namespace with one application, one queue and one credential that may do everything in all its queues."""

    def __init__(self, connection: psycopg.Connection[Row], *, namespace: str = NAMESPACE) -> None:
        self.connection = connection
        self.namespace = namespace
        self._keys = itertools.count(1)
        token = new_token()
        body = self.body(
            "select orbit.access_bootstrap_v1(%s, %s, %s::text[], 'bootstrap', %s, %s::text[])",
            namespace,
            APPLICATION,
            [QUEUE],
            hashlib.sha256(token.encode()).digest(),
            list(ALL_ACTIONS),
        )
        self.namespace_id: str = body["namespace_id"]
        self.application_id: str = body["application_id"]
        self.queue_id: str = body["queues"][0]["queue_id"]
        self.bootstrapped = Credential(body["credential_id"], token)
        self.owner = self.issue("owner")

    # Queries ----------------------------------------------------------------------------------------------

    def rows(self, query: LiteralString, *arguments: object) -> list[Row]:
        """Every row of a query."""
        return self.connection.execute(query, arguments, binary=True).fetchall()

    def row(self, query: LiteralString, *arguments: object) -> Row:
        """The only row of a query."""
        (found,) = self.rows(query, *arguments)
        return found

    def value(self, query: LiteralString, *arguments: object) -> Any:  # noqa: ANN401 - what the column holds
        """The only value of a query."""
        (found,) = self.row(query, *arguments)
        return found

    def body(self, query: LiteralString, *arguments: object) -> dict[str, Any]:
        """The JSON object that a function answers."""
        return json.loads(self.value(query, *arguments))

    def run(self, statement: LiteralString | sql.Composed, *arguments: object) -> None:
        """Run a statement without a result."""
        self.connection.execute(statement, arguments or None)

    def key(self) -> str:
        """A fresh idempotency key."""
        return f"key-{next(self._keys)}"

    # Access -----------------------------------------------------------------------------------------------

    def issue(
        self,
        name: str = "further",
        *,
        actions: Sequence[str] = ALL_ACTIONS,
        queues: Sequence[str] | None = None,
        application: str = APPLICATION,
        expires_in_seconds: int | None = None,
    ) -> Credential:
        """Issue a credential; for all queues by default."""
        token = new_token()
        body = self.body(
            "select orbit.credential_issue_v1(%s, %s, %s, %s, %s::text[], %s, %s::text[], %s::integer)",
            self.namespace,
            application,
            name,
            hashlib.sha256(token.encode()).digest(),
            list(actions),
            queues is None,
            list(queues or ()),
            expires_in_seconds,
        )
        return Credential(body["credential_id"], token)

    def add_queue(self, name: str, *, max_running: int | None = None, lease_seconds: int | None = None) -> str:
        """Make a queue; its id."""
        body = self.body(
            "select orbit.queue_create_v1(%s, %s, %s::integer, %s::integer)",
            self.namespace,
            name,
            max_running,
            lease_seconds,
        )
        return body["queue_id"]

    # Tasks ------------------------------------------------------------------------------------------------

    def submit(
        self,
        input_json: str = "{}",
        *,
        queue: str = QUEUE,
        policy: str | None = None,
        max_attempts: int | None = None,
        credential: Credential | None = None,
        key: str | None = None,
    ) -> str:
        """Submit a task; its id."""
        _, text, _, _ = self.row(
            "select * from orbit.task_submit_v1(%s, %s, %s, %s, %s::integer, %s, %s)",
            (credential or self.owner).sha256,
            queue,
            input_json,
            policy,
            max_attempts,
            key or self.key(),
            request_sha256(queue, input_json, policy, max_attempts),
        )
        return json.loads(text)["task_id"]

    def claim(
        self, *, queue: str = QUEUE, count: int = 1, worker: str = "worker", credential: Credential | None = None
    ) -> list[Attempt]:
        """Claim at most `count` ready tasks of a queue."""
        secrets = [new_secret() for _ in range(count)]
        found = self.rows(
            "select i, task_id, attempt_id, number, input_json"
            " from orbit.task_claim_v1(%s, %s, %s, %s::integer, %s::bytea[], null) order by i",
            (credential or self.owner).sha256,
            queue,
            worker,
            count,
            [digest for _, digest in secrets],
        )
        return [
            Attempt(task_id, attempt_id, number, input_json, *secret)
            for (_, task_id, attempt_id, number, input_json), secret in zip(found, secrets, strict=False)
        ]

    def confirm(
        self,
        attempt: Attempt,
        result_json: str | None = None,
        *,
        outcome: str = "succeeded",
        effect: str = "none",
        retryable: bool = False,
        credential: Credential | None = None,
    ) -> dict[str, Any]:
        """Confirm what an attempt came to; the receipt."""
        text, _, _ = self.row(
            "select * from orbit.attempt_confirm_v1(%s, %s, %s, %s, %s, %s, %s)",
            (credential or self.owner).sha256,
            attempt.attempt_id,
            attempt.secret_sha256,
            outcome,
            effect,
            retryable,
            result_json,
        )
        return json.loads(text)

    def result(
        self, result_json: str | None = None, *, queue: str = QUEUE, outcome: str = "succeeded", effect: str = "none"
    ) -> dict[str, Any]:
        """Submit, claim and confirm one task in a queue where nothing else is ready; the receipt."""
        task_id = self.submit(queue=queue)
        (attempt,) = self.claim(queue=queue)
        assert attempt.task_id == task_id, "another task of the queue was ready"
        return self.confirm(attempt, result_json, outcome=outcome, effect=effect)

    def results(self, count: int, *, queue: str = QUEUE) -> list[dict[str, Any]]:
        """Make several results one after another; their receipts in order of sequence."""
        return [self.result(str(number), queue=queue) for number in range(1, count + 1)]

    def head(self) -> int:
        """The newest committed sequence of the namespace."""
        return self.value("select last_sequence from orbit.event_streams where namespace_id = %s", self.namespace_id)

    # Subscriptions ----------------------------------------------------------------------------------------

    def subscribe(
        self,
        name: str = "results",
        *,
        queue: str = QUEUE,
        types: Sequence[str] | None = tuple(ResultType),
        from_sequence: int | None = 0,
        max_pending: int | None = None,
        max_attempts: int | None = None,
        credential: Credential | None = None,
        key: str | None = None,
    ) -> str:
        """Create a subscription, from the beginning by default; its id."""
        _, text, _, _ = self.row(
            "select * from orbit.subscription_create_v1("
            "%s, %s, %s, %s::text[], %s::bigint, %s::integer, %s::integer, %s, %s)",
            (credential or self.owner).sha256,
            name,
            queue,
            None if types is None else list(types),
            from_sequence,
            max_pending,
            max_attempts,
            key or self.key(),
            request_sha256(name, queue, types, from_sequence, max_pending, max_attempts),
        )
        return json.loads(text)["subscription_id"]

    def lease(
        self,
        subscription_id: str,
        *,
        capacity: int = 32,
        requested: int = 32,
        connection_id: str = CONNECTION,
        credential: Credential | None = None,
    ) -> Claimed:
        """Claim deliveries, without bounds."""
        secrets = [new_secret() for _ in range(min(capacity, requested))]
        found = self.rows(
            "select reason, scan_again, pending_count, i, delivery_id, event_id, event_type, event_sequence,"
            " lease_epoch, attempts, attempt_budget, snapshot_json"
            " from orbit.delivery_claim_v1(%s, %s, %s, %s::integer, %s::integer, %s::bytea[], null, null, null)"
            " order by i",
            (credential or self.owner).sha256,
            subscription_id,
            connection_id,
            capacity,
            requested,
            [digest for _, digest in secrets],
        )
        leases: list[Lease] = []
        for (_, _, _, position, *facts), (secret, digest) in zip(found, secrets, strict=False):
            if position is not None:
                leases.append(Lease(*facts, secret=secret, secret_sha256=digest))
        reason, scan_again, pending_count, *_ = found[0]
        return Claimed(reason, scan_again, pending_count, leases)

    def acknowledge(
        self,
        subscription_id: str,
        *leases: Lease,
        connection_id: str = CONNECTION,
        credential: Credential | None = None,
    ) -> list[Row]:
        """Acknowledge deliveries in one group; rows of i, delivery_id, code, acked_at, duplicate."""
        return self.rows(
            "select * from orbit.delivery_acknowledge_v1(%s, %s, %s, %s::text[], %s::bigint[], %s::bytea[]) order by i",
            (credential or self.owner).sha256,
            subscription_id,
            connection_id,
            [one.delivery_id for one in leases],
            [one.lease_epoch for one in leases],
            [one.secret_sha256 for one in leases],
        )

    # Time -------------------------------------------------------------------------------------------------

    def age_lease(self, delivery_id: str, *, seconds: float = 31) -> None:
        """Move the lease of a delivery back, as if that much time had passed."""
        with self._unguarded():
            self.run(
                "update orbit.event_deliveries set lease_expires_at = lease_expires_at - make_interval(secs => %s),"
                " updated_at = updated_at - make_interval(secs => %s) where delivery_id = %s",
                seconds,
                seconds,
                delivery_id,
            )

    def age_backoff(self, delivery_id: str, *, seconds: float = 31) -> None:
        """Move the moment at which a delivery becomes available back."""
        with self._unguarded():
            self.run(
                "update orbit.event_deliveries set available_at = available_at - make_interval(secs => %s)"
                " where delivery_id = %s",
                seconds,
                delivery_id,
            )

    def age_attempt(self, attempt_id: str, *, seconds: float = 3601) -> None:
        """Move the lease of an attempt back."""
        self.run(
            "update orbit.task_attempts set lease_expires_at = lease_expires_at - make_interval(secs => %s)"
            " where attempt_id = %s",
            seconds,
            attempt_id,
        )

    def age_task(self, task_id: str, *, seconds: float = 31) -> None:
        """Move the moment at which a task becomes available back."""
        self.run(
            "update orbit.tasks set available_at = available_at - make_interval(secs => %s) where task_id = %s",
            seconds,
            task_id,
        )

    @contextmanager
    def _unguarded(self) -> Generator[None]:
        """Turn the guards off for this session; needs a superuser (section 23.4)."""
        with self.connection.transaction():
            self.run("set local session_replication_role = replica")
            yield


def request_sha256(*parts: object) -> str:
    """A fingerprint as a request of these parts has one."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@contextmanager
def opened_scene(database: TestDatabase, *, namespace: str = NAMESPACE) -> Generator[Scene]:
    """Open a scene on a database that has Orbit's schema."""
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        yield Scene(connection, namespace=namespace)


@pytest.fixture
def orbit_scene(orbit_database: TestDatabase) -> Iterator[Scene]:
    """Give a namespace with one application, one queue and one credential that may do everything."""
    with opened_scene(orbit_database) as scene:
        yield scene
