"""The answer is lost after the commit: the same key gives the first answer, and there is one effect (T-C11, T-C02)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, LiteralString

import httpx
import pytest

from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually, eventually_row
from tests.kit.orbit.callers import SUBSCRIPTIONS, Caller, HttpScene, done, open_http_scene
from tests.kit.orbit.server import Serving, serving_process
from tests.kit.proxy import Proxy, Way


def post_and_lose(
    proxy: Proxy, scene: HttpScene, caller: Caller, path: str, body: dict[str, Any] | str, key: str | None
) -> None:
    """Send a request, let it be committed, and cut the connection before a byte of the answer comes back."""
    proxy.hold(Way.DOWN)
    client = httpx.Client(base_url=f"http://127.0.0.1:{proxy.port}", timeout=30)
    with client, ThreadPoolExecutor(1) as thread:
        sent = thread.submit(Caller(client, caller.token).post, path, body, key=key)
        eventually(lambda: proxy.is_holding(Way.DOWN), what="the answer")
        proxy.cut()
        with pytest.raises(httpx.TransportError):
            _ = sent.result(30)
    proxy.release()
    assert scene.connection.info.transaction_status == 0


@pytest.mark.req("orbit:T-C11", "orbit:API-11", "orbit:IDM-09", "orbit:SDK-04")
def test_a_lost_answer_is_given_again_and_the_effect_is_one(http_scene: HttpScene, orbit_server: Serving) -> None:
    """Create, pause, resume and retry: each is repeated on a new connection with its key."""
    caller = http_scene.caller()
    _ = caller.finish()
    create = {"name": "a", "queue": "billing", "from_sequence": 0, "max_attempts": 1}
    with Proxy(("127.0.0.1", int(orbit_server.base_url.rpartition(":")[2]))) as proxy:

        def lose(path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
            post_and_lose(proxy, http_scene, caller, path, body, key)
            again = caller.post(path, body, key=key)
            assert again.headers["idempotency-replayed"] == "true"
            assert again.is_success
            return again.json()

        subscription = lose(SUBSCRIPTIONS, create, "create")
        path = f"{SUBSCRIPTIONS}/{subscription['subscription_id']}"
        delivery = http_scene.exhausted_delivery(caller, subscription["subscription_id"])
        assert lose(f"{path}/pause", {"expected_revision": 1}, "pause")["revision"] == 2
        assert lose(f"{path}/resume", {"expected_revision": 2}, "resume")["revision"] == 3
        retry = {"expected_revision": delivery["revision"], "reason": "fixed", "additional_attempts": 5}
        retried = lose(f"{path}/deliveries/{delivery['delivery_id']}/retry", retry, "retry")
    assert retried["attempt_budget"] == 6
    assert done(caller.get(path))["revision"] == 3
    rows = http_scene.connection.execute(
        "select action, count(*) from orbit.audit_log where action like 'event.subscription.%%'"
        " or action = 'event.delivery.retried' group by 1 order by 1"
    ).fetchall()
    assert rows == [
        ("event.delivery.retried", 1),
        ("event.subscription.created", 1),
        ("event.subscription.paused", 1),
        ("event.subscription.resumed", 1),
    ]


@pytest.mark.req("orbit:T-C02", "orbit:SRC-07", "orbit:SRC-08", "orbit:T-C11")
def test_a_server_killed_between_commit_and_answer_has_given_nothing_away(orbit_database: TestDatabase) -> None:
    """The worker repeats its confirmation at the next server and gets the first receipt; a creation likewise."""
    committed: list[LiteralString] = [
        "select 1 from orbit.execution_receipts",
        "select 1 from orbit.event_subscriptions",
    ]
    with (
        serving_process(orbit_database.dsn) as first,
        Proxy(("127.0.0.1", int(first.base_url.rpartition(":")[2]))) as proxy,
        open_http_scene(first.base_url, orbit_database) as scene,
    ):
        caller = scene.caller()
        _ = caller.submit()
        (claim,) = caller.claim()
        confirm = f'{{"lease_secret":"{claim["lease_secret"]}","outcome":"succeeded","result":1.00}}'
        create = json.dumps({"name": "a", "queue": "billing", "from_sequence": 0})
        requests = {
            "result": (f"/v1/worker/attempts/{claim['attempt_id']}/result", confirm, None),
            "create": (SUBSCRIPTIONS, create, "k"),
        }
        proxy.hold(Way.DOWN)
        client = httpx.Client(base_url=f"http://127.0.0.1:{proxy.port}", timeout=30)
        with client, ThreadPoolExecutor(2) as threads:
            through = Caller(client, caller.token)
            sent = [threads.submit(through.post, path, body, key=key) for path, body, key in requests.values()]
            for query in committed:
                _ = eventually_row(scene.connection, query)
            first.kill()
            proxy.cut()
            for one in sent:
                with pytest.raises(httpx.TransportError):
                    _ = one.result(30)
    with serving_process(orbit_database.dsn) as second, open_http_scene(second.base_url, orbit_database) as scene:
        again = Caller(scene.client, caller.token)
        answers = {name: again.post(path, body, key=key) for name, (path, body, key) in requests.items()}
        assert done(answers["result"])["sequence"] == 1
        assert answers["create"].headers["idempotency-replayed"] == "true"
        counts = scene.connection.execute(
            "select (select count(*) from orbit.result_events), (select count(*) from orbit.execution_receipts),"
            " (select count(*) from orbit.event_subscriptions)"
        ).fetchone()
        assert counts == (1, 1, 1)
