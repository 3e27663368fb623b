"""Plans made while the tables were empty serve 20,000 deliveries later (T-R25): no scan of a table, no wrong index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import psycopg
import pytest
from psycopg.errors import Diagnostic

from orbit.access.token import new_secret
from tests.kit.database import TestDatabase
from tests.kit.orbit.consuming import seed_results
from tests.kit.orbit.scene import CONNECTION, Scene
from tests.kit.plans import SETTINGS

ROWS: Final = 20_000
REMOVED_MAX: Final = 100
SMALL: Final = frozenset({"queues", "namespaces", "applications", "credentials", "event_stream_locks"})
"""Tables without 20,000 rows; their plans are the business of access."""
DIGESTS: Final = [new_secret()[1] for _ in range(32)]

Node = dict[str, Any]


class Watched:
    """A session whose statements, nested ones too, show their plans."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.plans: list[Node] = []
        connection.add_notice_handler(self._note)
        connection.execute("load 'auto_explain'")
        for name, value in SETTINGS.items():
            connection.execute("select set_config(%s, %s, false)", (name, value))

    def nodes(self, call: Callable[[], object]) -> list[Node]:
        """Every node of every plan that a call ran."""
        self.plans.clear()
        call()
        return [node for plan in self.plans for node in _nodes(plan["Plan"])]

    def _note(self, notice: Diagnostic) -> None:
        message = notice.message_primary or ""
        if "plan:" in message:
            self.plans.append(json.loads(message.split("plan:\n", 1)[1]))


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


class Consumer:
    """Every hot call of a consumer and of a reader of lists, on one session."""

    def __init__(self, connection: psycopg.Connection[Any], token_sha256: bytes, one: str) -> None:
        self._connection = connection
        self._token_sha256 = token_sha256
        self._one = one
        self.found: list[tuple[Any, ...]] = []

    def calls(self) -> list[Callable[[], object]]:
        """Claim, acknowledge what it brought, look, and read each kind of list."""
        lists = [partial(self._page, states) for states in (None, ["EXPIRED"], ["PENDING", "LEASED"], ["ACKED"])]
        return [self._claim, self._acknowledge, self._look, *lists]

    def _claim(self) -> None:
        self.found = self._connection.execute(
            "select delivery_id, lease_epoch, event_sequence"
            " from orbit.delivery_claim_v1(%s, %s, %s, 32, 32, %s, null, null, null)",
            (self._token_sha256, self._one, CONNECTION, DIGESTS),
        ).fetchall()

    def _acknowledge(self) -> None:
        self._connection.execute(
            "select * from orbit.delivery_acknowledge_v1(%s, %s, %s, %s::text[], %s::bigint[], %s::bytea[])",
            (
                self._token_sha256,
                self._one,
                CONNECTION,
                [row[0] for row in self.found],
                [row[1] for row in self.found],
                DIGESTS[: len(self.found)],
            ),
        )

    def _look(self) -> None:
        self._connection.execute("select orbit.delivery_waiting_v1(%s, null, null)", (self._one,))

    def _page(self, states: list[str] | None) -> None:
        self._connection.execute(
            "select * from orbit.delivery_list_v1(%s, %s, %s::text[], 50, 19000)",
            (self._token_sha256, self._one, states),
        )


def assert_cheap(nodes: list[Node]) -> None:
    """No node reads a large table from end to end, removes many rows, or finds a subscription by another index."""
    assert nodes
    for node in nodes:
        if node.get("Relation Name") in SMALL:
            continue
        assert node["Node Type"] != "Seq Scan", node
        assert node["Node Type"] != "Bitmap Index Scan" or node["Index Name"].endswith("_pkey"), node
        assert node.get("Rows Removed by Filter", 0) <= REMOVED_MAX, node
        if node.get("Relation Name") == "event_subscriptions":
            assert node.get("Index Name", "event_subscriptions_pkey") == "event_subscriptions_pkey", node


@pytest.mark.req("orbit:T-R25", "orbit:GEN-11", "orbit:JRN-09")
def test_plans_of_empty_tables_serve_twenty_thousand_deliveries(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """Claim, ACK, the unlocked look and the lists, planned on nothing, use the index of their own and remove little."""
    scene = orbit_scene
    scene.run("alter table orbit.event_deliveries set (autovacuum_enabled = off)")
    scene.run("alter table orbit.result_events set (autovacuum_enabled = off)")
    one = scene.subscribe(max_pending=1000)
    with psycopg.connect(orbit_database.dsn, autocommit=True) as connection:
        watched, consumer = Watched(connection), Consumer(connection, scene.owner.sha256, one)
        scene.result()
        for call in consumer.calls() * 2:
            call()
        seed_results(scene, 2, ROWS)
        seed_acknowledged(scene, one, ROWS - 500)
        for call in consumer.calls():
            assert_cheap(watched.nodes(call))
        claim, *others = consumer.calls()
        claim()
        scene.age_lease(consumer.found[0][0])
        assert_cheap(watched.nodes(claim))
        for call in others:
            assert_cheap(watched.nodes(call))
        assert consumer.found[0][2] == ROWS - 500 + 2 + 64


def seed_acknowledged(scene: Scene, one: str, count: int) -> None:
    """Make the results from 2 on acknowledged deliveries, and move the cursor behind them."""
    with scene.connection.transaction():
        scene.run("set local session_replication_role = replica")
        scene.run(
            "insert into orbit.event_deliveries (delivery_id, namespace_id, subscription_id, event_id, state, attempts,"
            " lease_epoch, legacy, event_sequence, attempt_budget, available_at, lease_secret_sha256,"
            " lease_connection_id, lease_expires_at, acked_at, revision)"
            " select 'dlv_' || lpad(to_hex(sequence), 32, '0'), namespace_id, %s, event_id, 'ACKED', 1, 1, false,"
            " sequence, 20, now(), sha256('x'), 'conn', now(), now(), 3"
            " from orbit.result_events where sequence between 2 and %s",
            one,
            count + 1,
        )
        scene.run(
            "update orbit.event_subscriptions set cursor_sequence = %s where subscription_id = %s", count + 1, one
        )
