"""The server dies with all its processes, or stops as in a crash, while results are confirmed (decision 0016, T-C08).

Workers confirm through the service and write down each receipt when they have it; a consumer writes down each delivery
when it has it. After the restart every receipt must be in the journal as it was given, and every delivery must be of a
result that is there, with the same content: no receipt lost, no sequence seen with two contents.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import psycopg
import pytest

from orbit.access.token import TokenDigest, new_secret, secret_digest
from orbit.journal.wake import WakeHub
from orbit.model.errors import OrbitError
from orbit.store.calls import call
from orbit.store.database import Database
from orbit.tasks.fence import CommitMode, session_dsn
from orbit.tasks.service import Tasks
from seapost.database.embedded import EmbeddedServer
from seapost.testing.databases import DatabaseServer, TestDatabase, open_directory
from tests.kit.orbit.database import new_orbit_database
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.platform import ANY_REQUEST, TASK_ACTIONS, Place, assert_tasks_whole, found
from tests.kit.orbit.server_death import family_of, kill_server
from tests.kit.seeds import new_seed

ROUNDS: Final = int(os.environ.get("ORBIT_CRASH_ROUNDS", "2"))
WORKERS: Final = 6
SETTINGS: Final = {
    "wal_writer_delay": "10s",
    "wal_writer_flush_after": "0",
    "autovacuum": "off",
    "commit_delay": "20000",
    "commit_siblings": "0",
}
"""Nobody but the fence brings early commits to the disk, and it takes 20 ms, so that a crash takes them back."""
EVENT_ACTIONS: Final = ("events:manage", "events:consume", "events:read")


@dataclass(frozen=True)
class Crash:
    """How results are committed and how the server ends."""

    mode: CommitMode
    family: Callable[[], list[int]]
    blow: Callable[[list[int]], None]


@dataclass
class Seen:
    """What reached somebody outside.

    Attributes:
        receipts: sequence to event id, as workers were told.
        deliveries: sequence to event id and snapshot, as the consumer was told.
    """

    receipts: dict[int, str] = field(default_factory=dict[int, str])
    deliveries: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])


@pytest.fixture
def crashing() -> Iterator[tuple[EmbeddedServer, TestDatabase]]:
    """Give a durable server of its own with one database."""
    directory = open_directory()
    try:
        with EmbeddedServer(directory / "data", settings=SETTINGS) as server:
            database = new_orbit_database(DatabaseServer(server.dsn(), server))
            yield server, database
            database.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _work(tasks: Tasks, place: Place, name: str, seen: Seen) -> None:
    """Submit, claim and confirm until the server is gone."""
    token = TokenDigest(place.token_sha256)
    number = 0
    while True:
        number += 1
        await tasks.submit(
            token,
            queue=place.queues[0],
            input_json="{}",
            idempotency_key=f"{name}-{number}",
            request_sha256=ANY_REQUEST,
        )
        body = await tasks.claim(token, queue=place.queues[0], worker_id=name, maximum=1)
        for item in json.loads(body)["items"]:
            answer = await tasks.confirm(
                token,
                attempt_id=item["attempt_id"],
                secret_sha256=secret_digest(item["lease_secret"]),
                outcome="succeeded",
                result_json=json.dumps(f"{name}-{number}"),
            )
            receipt = json.loads(answer.body)
            assert seen.receipts.setdefault(receipt["sequence"], receipt["event_id"]) == receipt["event_id"]


async def _consume(database: Database, place: Place, subscription_id: str, seen: Seen) -> None:
    """Claim and acknowledge deliveries until the server is gone."""
    connection_id = "conn_" + "0" * 32
    secrets: list[bytes] = [new_secret()[1] for _ in range(32)]
    while True:
        rows = await database.run(
            lambda c: call(
                c,
                "select event_sequence, event_id, snapshot_json, delivery_id, lease_epoch, i"
                " from orbit.delivery_claim_v1(%s, %s, %s, 32, 32, %s, null, null, null) where i is not null",
                (place.token_sha256, subscription_id, connection_id, secrets),
            )
        )
        for sequence, event_id, snapshot, *_ in rows:
            assert seen.deliveries.setdefault(sequence, (event_id, snapshot)) == (event_id, snapshot)
        if rows:
            proofs: tuple[list[str], list[int], list[bytes]] = (
                [row[3] for row in rows],
                [row[4] for row in rows],
                [secrets[row[5] - 1] for row in rows],
            )
            await database.run(
                lambda c, proofs=proofs: call(
                    c,
                    "select code from orbit.delivery_acknowledge_v1(%s, %s, %s, %s, %s::bigint[], %s)",
                    (place.token_sha256, subscription_id, connection_id, *proofs),
                )
            )


async def _round(crash: Crash, dsn: str, place: Place, subscription_id: str, seen: Seen, name: str) -> None:
    """Work until enough receipts and a delivery were seen, then crash the server in the middle of it."""
    wanted = len(seen.receipts) + random.randrange(20, 60)
    wakes = WakeHub()
    async with Database(session_dsn(dsn, crash.mode), size_max=WORKERS + 2) as database:
        tasks = Tasks(database, wakes, crash.mode)
        running = [asyncio.create_task(_work(tasks, place, f"{name}-{number}", seen)) for number in range(WORKERS)]
        running.append(asyncio.create_task(_consume(database, place, subscription_id, seen)))
        family: list[int] = []
        with wakes.listen(place.queue_ids[0], "") as listener:
            # the best moment: a result was delivered whose worker waits at the fence for its receipt
            while not family or (crash.mode is CommitMode.FENCED and seen.deliveries.keys() <= seen.receipts.keys()):
                assert not any(task.done() for task in running), [task.exception() for task in running if task.done()]
                await listener.wait(0.05)
                if len(seen.receipts) >= wanted and not family:
                    family = await asyncio.to_thread(crash.family) or [0]
        crash.blow([process_id for process_id in family if process_id])
        for task in running:
            task.cancel()
        for end in await asyncio.gather(*running, return_exceptions=True):
            assert isinstance(end, OrbitError | psycopg.Error | asyncio.CancelledError), end


@pytest.mark.req("orbit:JRN-17", "orbit:SRC-07", "orbit:JRN-06", "orbit:T-C08", "F45")
@pytest.mark.timeout(60 + 20 * ROUNDS)
@pytest.mark.parametrize("manner", ["killed behind the fence", "stopped without the fence"])
def test_a_crash_takes_back_nothing_that_anybody_was_told(
    crashing: tuple[EmbeddedServer, TestDatabase], manner: str
) -> None:
    """Some rounds: no receipt lost or changed, no delivery of a result that is not there, the journal whole."""
    server, database = crashing
    crash = (
        Crash(CommitMode.FENCED, lambda: family_of(server), lambda known: kill_server(server, known))
        if manner == "killed behind the fence"
        else Crash(CommitMode.PLAIN, list, lambda _: server.stop(immediate=True))
    )
    random.seed(new_seed())
    owner = database.connect(autocommit=True)
    place = found(owner, actions=(*TASK_ACTIONS, *EVENT_ACTIONS))
    row = owner.execute(
        "select response_json from orbit.subscription_create_v1(%s, 'all', 'billing', null, 0, 1000, null, 'k', %s)",
        (place.token_sha256, ANY_REQUEST),
    ).fetchone()
    assert row is not None
    subscription_id = json.loads(row[0])["subscription_id"]
    owner.close()
    seen = Seen()
    for number in range(ROUNDS):
        asyncio.run(_round(crash, database.dsn, place, subscription_id, seen, f"round-{number}"))
        server.start()
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            rows = connection.execute("select sequence, event_id, snapshot_json from orbit.result_events").fetchall()
            journal = {sequence: (event_id, snapshot) for sequence, event_id, snapshot in rows}
            assert {n: event for n, event in seen.receipts.items() if journal.get(n, ("", ""))[0] != event} == {}
            assert {n: text for n, text in seen.deliveries.items() if journal.get(n) != text} == {}
            assert_tasks_whole(connection)
            assert_invariants(connection)
            # what ran when the server died is not there any more, or is confirmed or lost like everything else
            connection.execute("update orbit.task_attempts set lease_expires_at = now() where state = 'RUNNING'")
    assert len(seen.receipts) > 20 * ROUNDS
    assert seen.deliveries
