"""Everything at once on one namespace: no deadlock, and afterwards every rule of section 28.4 holds (T-R16).

Ten seconds by default; `ORBIT_STRESS_SECONDS` sets another time; `make orbit-stress` takes the 60 of the specification.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import psycopg
import pytest

from tests.kit.database import TestDatabase
from tests.kit.orbit.consuming import change, on, retry
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import Lease, Scene
from tests.kit.seeds import new_seed

SECONDS: Final = float(os.environ.get("ORBIT_STRESS_SECONDS", "10"))
QUEUES: Final = ("orders", "refunds")
EXPECTED: Final = frozenset({"OB014", "OB018", "OB019", "OB020", "OB024"})
"""Refusals that a random operation may meet: revision, name, limit, state, not exhausted."""
PRODUCERS: Final = 2
CONSUMERS: Final = 3
MANAGERS: Final = 2

Work = Callable[[Scene, random.Random, int], None]


class Stress:
    """What the threads share: the subscriptions there are, and what happened."""

    def __init__(self, database: TestDatabase, scene: Scene) -> None:
        self.database = database
        self.scene = scene
        self.subscriptions = [
            scene.subscribe(f"s-{queue}-{window}", queue=queue, max_pending=window, max_attempts=2)
            for queue in QUEUES
            for window in (3, 40)
        ]
        self.names = itertools.count()
        self.ends_at = time.monotonic() + SECONDS
        self.failed = threading.Event()
        self.outcomes: Counter[str] = Counter()

    def loop(self, work: Work, seed: int, number: int) -> None:
        """Do random pieces of work until the time is over or somebody failed."""
        dice = random.Random(seed * 1000 + number)
        with psycopg.connect(self.database.dsn, autocommit=True) as connection:
            scene = on(self.scene, connection)
            while time.monotonic() < self.ends_at and not self.failed.is_set():
                try:
                    work(scene, dice, number)
                except psycopg.Error as error:
                    if error.sqlstate not in EXPECTED:
                        self.failed.set()
                        raise
                    self.outcomes[error.sqlstate or ""] += 1

    def produce(self, scene: Scene, dice: random.Random, number: int) -> None:
        """A result, or a task that is cancelled before it began."""
        queue = QUEUES[number % len(QUEUES)]
        if dice.random() < 0.1:
            task_id = scene.submit(queue=queue)
            scene.rows(
                "select * from orbit.task_cancel_v1(%s, %s, 1, null, %s, %s)",
                scene.owner.sha256,
                task_id,
                scene.key(),
                "0" * 64,
            )
        else:
            scene.result(queue=queue, outcome=dice.choice(["succeeded", "failed"]))
        self.outcomes["produced"] += 1

    def consume(self, scene: Scene, dice: random.Random, number: int) -> None:
        """Claim, acknowledge some, forget some, let some run out."""
        one = dice.choice(self.subscriptions)
        connection_id = f"conn_{number:032x}"
        leases = scene.lease(one, capacity=8, requested=dice.randint(1, 8), connection_id=connection_id).leases
        dice.shuffle(leases)
        kept = [lease for lease in leases if dice.random() < 0.8]
        if kept:
            scene.acknowledge(one, *kept, *dice.sample(kept, 1), connection_id=connection_id)
        self.outcomes["leased"] += len(leases)
        self.expire(scene, one, [lease for lease in leases if lease not in kept])

    def expire(self, scene: Scene, one: str, leases: list[Lease]) -> None:
        """Let leases run out, in the lock order of everybody else."""
        with scene.connection.transaction():
            scene.run("select 1 from orbit.event_subscriptions where subscription_id = %s for update", one)
            for lease in leases:
                scene.age_lease(lease.delivery_id)
            scene.run("set local session_replication_role = replica")
            scene.run(
                "update orbit.event_deliveries set available_at = clock_timestamp()"
                " where subscription_id = %s and state = 'PENDING'",
                one,
            )

    def manage(self, scene: Scene, dice: random.Random, number: int) -> None:
        """Create, pause, resume, retry, list."""
        one = dice.choice(self.subscriptions)
        revision = scene.value("select revision from orbit.event_subscriptions where subscription_id = %s", one)
        match dice.randrange(5):
            case 0:
                scene.subscribe(f"x-{number}-{next(self.names)}", queue=dice.choice(QUEUES), from_sequence=None)
            case 1:
                change(scene, "pause", one, revision)
            case 2 | 3:
                change(scene, "resume", one, revision)
            case _:
                rows = scene.rows(
                    "select delivery_id from orbit.event_deliveries where subscription_id = %s and state = 'EXPIRED'"
                    " limit 3",
                    one,
                )
                for (delivery_id,) in rows:
                    retry(scene, one, delivery_id, additional=2)
                    self.outcomes["retried"] += 1


@pytest.mark.req(
    "orbit:T-R16", "orbit:LCK-01", "orbit:LCK-03", "orbit:LCK-04", "orbit:LCK-09", "orbit:LCK-11", "orbit:T-P01",
    "orbit:T-P02", "orbit:T-P03",
)  # fmt: skip
@pytest.mark.timeout(SECONDS + 60)
def test_everything_at_once_neither_deadlocks_nor_breaks_a_rule(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """Producers, consumers and managers at random on four subscriptions of two queues."""
    orbit_scene.add_queue(QUEUES[1])
    stress, seed = Stress(orbit_database, orbit_scene), new_seed()
    works: list[Work] = [stress.produce] * PRODUCERS + [stress.consume] * CONSUMERS + [stress.manage] * MANAGERS
    with ThreadPoolExecutor(max_workers=len(works)) as pool:
        running = [pool.submit(stress.loop, work, seed, number) for number, work in enumerate(works)]
        for one in running:
            one.result()
    assert_invariants(orbit_scene.connection)
    for what in ("produced", "leased", "retried"):
        assert stress.outcomes[what] > 0, stress.outcomes
