"""A short round of everything at once: two dispatchers and a consumer under random faults, planned by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

import pytest

from tests.kit.builders import SHIPPED
from tests.kit.processes import Worker
from tests.kit.proxy import Proxy, Way
from tests.kit.scene import Scene
from tests.kit.seeds import new_seed

EVENTS = 1_500
STEPS = 20
CHUNK = EVENTS // STEPS
SHARED_IN_TEN = 3
LEASE_SECONDS = 0.6
LINE = {"lease_seconds": LEASE_SECONDS, "timeout_seconds": 1.0, "batch_size": 25}
DISPATCHERS = ("dispatcher-1", "dispatcher-2")
CONSUMER = "consumer"

_EXPIRED_OF = """
select count(*) from seapost.delivery_lease as l
join seapost.delivery_attempt_start as s on (s.event_id, s.attempt_id) = (l.event_id, l.attempt_id)
where s.owner = %s"""


@dataclass
class Round:
    """The processes of one round, each replaced as soon as it has died."""

    scene: Scene
    wire: Proxy
    rng: random.Random
    workers: dict[str, Worker] = field(default_factory=dict[str, Worker])
    frozen: dict[str, float] = field(default_factory=dict[str, float])
    done: list[str] = field(default_factory=list[str])

    def tend(self) -> None:
        """Start whoever is missing and wake whoever has overslept its leases."""
        for name in (*DISPATCHERS, CONSUMER):
            worker = self.workers.get(name)
            if worker is None or not worker.lives:
                self.frozen.pop(name, None)
                if name == CONSUMER:
                    self.workers[name] = self.scene.consumer(name)
                else:
                    self.workers[name] = self.scene.caller(name, url=self.wire.url, destination_settings=LINE)
        for name, since in list(self.frozen.items()):
            if monotonic() - since > LEASE_SECONDS and not self._holds(name):
                self.workers[name].wake()
                del self.frozen[name]

    def _holds(self, name: str) -> bool:
        """Whether a frozen dispatcher still stands as the holder of a lease."""
        return name in DISPATCHERS and self.scene.source.value(_EXPIRED_OF, self.workers[name].owner) > 0

    def strike(self) -> None:
        """One fault, as the seed says."""
        name = self.rng.choice((*DISPATCHERS, CONSUMER))
        blows: list[Callable[[str], None]] = [self._kill, self._kill, self._freeze, self._terminate, self._cut]
        blow = self.rng.choice(blows)
        blow(name)
        self.done.append(f"{blow.__name__.strip('_')} {name}")

    def _kill(self, name: str) -> None:
        self.workers[name].kill()

    def _freeze(self, name: str) -> None:
        """One dispatcher at least stays awake, so that somebody recovers."""
        if not self.frozen:
            self.workers[name].await_report("ready")
            self.workers[name].stop()
            self.frozen[name] = monotonic()

    def _terminate(self, name: str) -> None:
        side = self.scene.sink if name == CONSUMER else self.scene.source
        part = "inbox" if name == CONSUMER else self.rng.choice(["dispatcher", "listener"])
        side.terminate(part, least=0)

    def _cut(self, _name: str) -> None:
        self.wire.cut_after(self.rng.choice(list(Way)), self.rng.randrange(1, 20_000))


@pytest.mark.timeout(300)
@pytest.mark.req("TST-27", "TST-28", "TST-33", "TST-34", "DLV-14", "DLV-15", "GEN-16", "PUB-09", "CLM-09", "F18", "F32")
def test_random_faults_lose_and_double_nothing(scene: Scene) -> None:
    """Kills, frozen processes, terminated sessions and cut responses, twenty of them in 1,500 events: every
    delivery ends, every effect exists once, no invariant is broken and no deadlock was met.
    """
    rng = random.Random(new_seed())
    with Proxy(("127.0.0.1", scene.port)) as wire:
        play = Round(scene, wire, rng)
        play.tend()
        for _ in range(STEPS):
            shared = CHUNK * SHARED_IN_TEN // 10
            scene.append(CHUNK - shared, do=rng.choice(["apply", "apply", "retry"]))
            scene.append(shared, SHIPPED)
            scene.await_true(
                lambda: scene.source.count("seapost.delivery_lease") > 0 or scene.unended() == 0,
                "work under way",
                play.tend,
            )
            play.strike()
            play.tend()
        scene.await_end(play.tend)
        for name in list(play.frozen):
            play.workers[name].wake()
        print("\n".join(play.done))  # noqa: T201 - pytest shows it when the test fails
        assert scene.source.count("seapost.event") == EVENTS
        assert scene.source.count("seapost.delivery_quarantine") == 0
        assert scene.source.count("seapost.publication") == EVENTS
        scene.assert_kept()
