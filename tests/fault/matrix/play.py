"""One round: a crew at full speed, one fault in the middle of its work, and a verdict over all that came of it."""

from __future__ import annotations

import random
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from psycopg import OperationalError

from seapost.telemetry.catalog import LogEvent
from tests.fault.matrix import oracle
from tests.fault.matrix.fault import Fault
from tests.fault.matrix.oracle import Verdict
from tests.fault.matrix.servers import Servers
from tests.fault.matrix.stage import LIMITS, Stage
from tests.kit.processes import Nursery, Worker
from tests.kit.scene import opened

FED_AFTER_MIN: Final = 5
"""Transactions that the producer must get through after the fault has ended."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a round does.

    Attributes:
        probe: events of each kind in the load that shows the rate.
        probes: how many such loads are measured before and after, besides a small one that only warms up.
    """

    probe: tuple[int, int]
    probes: int


SHORT: Final = Effort((100, 30), 1)
"""The rate is only shown."""
LONG: Final = Effort((200, 60), 2)

_REFUSED: Final = re.compile(r"deliveries['\"]?[=:] ?(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What came of one fault with one seed.

    Attributes:
        recovery_seconds: from the end of the fault to the acknowledgement of the last delivery committed before it.
        recovery_bound: what that may take; one lease and five seconds, times `slowdown`.
        rate_before, rate_after: deliveries per second of the same load on an undisturbed crew.
        drain_seconds: the longest that a dispatcher took to end after SIGTERM in the middle of work.
        leases_left: held by nobody any more after that drain.
    """

    fault: str
    seed: int
    schedule: list[str]
    verdict: Verdict
    stale_refused: int
    recovery_seconds: float
    recovery_bound: float
    slowdown: float
    rate_before: float
    rate_after: float
    drain_seconds: float
    drain_bound: float
    leases_left: int
    seconds: float

    @property
    def failures(self) -> list[str]:
        """Why the round has failed; empty: it has not."""
        found = list(self.verdict.findings)
        if self.recovery_seconds > self.recovery_bound:
            found.append(f"recovery took {self.recovery_seconds:.2f} s, allowed are {self.recovery_bound:.2f} s")
        if self.drain_seconds > self.drain_bound:
            found.append(f"a drain took {self.drain_seconds:.2f} s, allowed are {self.drain_bound:.2f} s")
        if self.leases_left:
            found.append(f"a drain left {self.leases_left} leases")
        return found

    @property
    def rate_kept(self) -> float:
        """The rate afterwards as a share of the rate before."""
        return self.rate_after / self.rate_before


def play(
    kind: type[Fault], seed: int, servers: Servers, nursery: Nursery, folder: Path, effort: Effort = LONG
) -> Round:
    """Play one round.

    Raises:
        AssertionError: something that must happen did not within its generous deadline; the text holds the schedule.
    """
    began = monotonic()
    rng = random.Random(f"{kind.name}:{seed}")
    homes = kind.homes(rng)
    with servers.databases(homes) as (source, sink, beneath):
        stage = Stage(source, sink, nursery, folder, rng=rng, homes=homes, servers=beneath)
        with opened(stage):
            fault = kind(stage)
            try:
                return _play(fault, stage, effort, seed, began)
            except (AssertionError, OperationalError) as error:
                raise AssertionError(f"{'; '.join(stage.schedule)}\n{error}") from error


def _play(fault: Fault, stage: Stage, effort: Effort, seed: int, began: float) -> Round:
    fault.start()
    before = _rate(stage, effort)
    stage.feed()
    stage.burst()
    stage.machine.mark()
    fault.strike()
    ended_at = stage.now()
    stage.machine.mark()
    _await_fed(stage)
    stage.stop_feeding()
    recovery = stage.await_recovery(ended_at)
    stage.machine.mark()
    stage.await_end()
    fault.mend()
    after = _rate(stage, effort)
    drain, left = _drain(stage)
    stage.deliverer("finisher")
    stage.await_end()
    stage.end()
    stage.machine.mark()
    verdict = _judge(stage)
    slowdown = stage.machine.slowdown
    recovery_bound = (LIMITS.lease_seconds + LIMITS.recovery_seconds) * slowdown
    drain_bound = LIMITS.grace_seconds * slowdown
    return Round(
        fault=fault.name,
        seed=seed,
        schedule=stage.schedule,
        verdict=verdict,
        stale_refused=sum(map(_refused, stage.workers)),
        recovery_seconds=recovery,
        recovery_bound=recovery_bound,
        slowdown=slowdown,
        rate_before=before,
        rate_after=after,
        drain_seconds=drain,
        drain_bound=drain_bound,
        seconds=monotonic() - began,
        leases_left=left,
    )


def _rate(stage: Stage, effort: Effort) -> float:
    """The best of a few probes after a small one to warm up: a busy neighbour makes a probe slower, never faster."""
    stage.rate(*SHORT.probe)
    return max(stage.rate(*effort.probe) for _ in range(effort.probes))


def _await_fed(stage: Stage) -> None:
    """The producer has got through after the fault, so the fault is over for producers too."""
    enough = stage.fed() + FED_AFTER_MIN
    stage.await_true(lambda: stage.fed() >= enough, "commits after the fault")


def _drain(stage: Stage) -> tuple[float, int]:
    """SIGTERM in the middle of work: how long the slowest dispatcher took, and how many leases were left."""
    stage.burst(150, 50)
    leaving = stage.dispatchers()
    for worker in leaving:
        worker.await_report("ready")
    began = monotonic()
    for worker in leaving:
        worker.signal(signal.SIGTERM)
    for worker in leaving:
        assert worker.await_end() == 0, str(worker)
    seconds = monotonic() - began
    return seconds, stage.source.count("seapost.delivery_lease")


def _judge(stage: Stage) -> Verdict:
    """The oracle's verdict, over sessions of its own."""
    stage.source.await_gone("producer")
    stage.source.close()
    stage.sink.close()
    return oracle.judge(oracle.read(stage.source.connection, stage.sink.connection), stage.ledger)


def _refused(worker: Worker) -> int:
    """Deliveries for which a worker was told that it is too late, by a stale settle or by a renewal without them."""
    total = 0
    for line in worker.log.splitlines():
        if LogEvent.SETTLE_STALE in line or LogEvent.LEASES_LOST in line:
            found = _REFUSED.search(re.sub(r"\x1b\[[0-9;]*m", "", line))
            total += int(found[1]) if found else 0
    return total
