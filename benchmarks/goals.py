"""The goals of speed, each as a row: what was asked, what was measured, and whether it was met."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Final

from benchmarks.contest import APPEND_MANY, APPEND_ONE, DRAIN
from benchmarks.entrants import FASTSTREAM, OVERLAPPED, PGQUEUER, RAW, RAW_LARGE, SYNCHRONOUS, TWICE, Entrant
from benchmarks.events import ENVELOPE_BYTES
from benchmarks.results import Results, percentile
from orbit.bench.tables import OrbitFigures

KILOBYTE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Goal:
    """One row.

    Attributes:
        limit: the figure to reach.
        measured: None: it could not be measured here.
        unit: printed after both figures.
        at_least: whether more is better; otherwise the limit is a ceiling.
    """

    text: str
    limit: float
    measured: float | None
    unit: str
    at_least: bool

    @property
    def met(self) -> bool | None:
        """Whether the goal was reached; None when nobody knows."""
        if self.measured is None:
            return None
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    @property
    def verdict(self) -> str:
        """In words: met or missed, and by how much of the goal."""
        if self.measured is None:
            return "not measured"
        distance = abs(self.measured / self.limit - 1)
        return f"{'met' if self.met else '**missed**'}, by {distance:.0%}"


def _at_least(text: str, limit: float, measured: float | None, unit: str = "×") -> Goal:
    return Goal(text, limit, measured, unit, at_least=True)


def _at_most(text: str, limit: float, measured: float | None, unit: str = "×") -> Goal:
    return Goal(text, limit, measured, unit, at_least=False)


def goals(results: Results) -> list[Goal]:
    """Every goal, in the order of the design."""
    return [
        *_drains(results),
        *_appends(results),
        *_waking(results),
        *_decay(results),
        *_counters(results),
        *_orbit(results.orbit),
    ]


def _drains(results: Results) -> list[Goal]:
    def ratio(one: Entrant, other: Entrant) -> float | None:
        return _ratio(results.median(one, DRAIN), results.median(other, DRAIN))

    cost = results.cost
    return [
        _at_least("synchronous with inbox, batch 100, against the raw loop", 0.45, ratio(SYNCHRONOUS, RAW)),
        _at_least("the same, against pgqueuer at its best batch", 1.2, ratio(SYNCHRONOUS, PGQUEUER)),
        _at_least("overlapped with inbox, batch 500, against the raw loop of 500", 0.6, ratio(OVERLAPPED, RAW_LARGE)),
        _at_least("the same, against pgqueuer", 2.0, ratio(OVERLAPPED, PGQUEUER)),
        _at_least("the same, against faststream-outbox", 3.0, ratio(OVERLAPPED, FASTSTREAM)),
        _at_most(
            "server CPU of claim and settle at batch 100, against the raw loop",
            2.0,
            None if cost is None else _ratio(cost.claim_settle, cost.raw),
        ),
    ]


def _appends(results: Results) -> list[Goal]:
    def against_raw(entrant: Entrant, workload: str) -> float | None:
        return _ratio(results.median(entrant, workload), results.median(RAW, workload))

    return [
        _at_least("append 1 per transaction, 1 destination", 0.58, against_raw(OVERLAPPED, APPEND_ONE)),
        _at_least("append 1 per transaction, 2 destinations", 0.58, against_raw(TWICE, APPEND_ONE)),
        _at_least("append 100 per transaction, 1 destination", 0.22, against_raw(OVERLAPPED, APPEND_MANY)),
        _at_least("append 100 per transaction, 2 destinations", 0.18, against_raw(TWICE, APPEND_MANY)),
    ]


def _waking(results: Results) -> list[Goal]:
    latency, producers = results.latency, results.producers
    return [
        _at_most("commit to handler at 50/s, p50", 3.0, statistics.median(latency) if latency else None, "ms"),
        _at_most("commit to handler at 50/s, p99", 10.0, percentile(latency, 99) if latency else None, "ms"),
        _at_least(
            "32 producers, against never notifying",
            0.85,
            None if producers is None else _ratio(producers.shipped, producers.never),
        ),
    ]


def _decay(results: Results) -> list[Goal]:
    pinned, finished, waiting = results.old_snapshot, results.finished, results.waiting
    churn, rows = results.settings["churn"], results.settings["rows"]
    return [
        _at_least(f"old snapshot, {churn:,} churned: rate kept", 0.9, pinned and pinned.rate),
        _at_most(f"old snapshot, {churn:,} churned: claim p50", 1.3, pinned and pinned.claim),
        _at_most(f"old snapshot, {churn:,} churned: settle p50", 1.3, pinned and pinned.settle),
        _at_most(f"{rows:,} finished: claim p50, against empty", 1.25, finished and finished.claim),
        _at_most(f"{rows:,} waiting: claim p50, against empty", 1.6, waiting and waiting.claim),
    ]


def _counters(results: Results) -> list[Goal]:
    counters = results.counters or {}

    def kilobytes(name: str, without: int = 0) -> float | None:
        return None if name not in counters else (counters[name] - without) / KILOBYTE

    return [
        _at_most("WAL, claim and settle", 1.4, kilobytes("claim_settle_wal"), "kB"),
        _at_most("WAL, inbox receipt", 0.65, kilobytes("inbox_wal"), "kB"),
        _at_most("WAL, append beyond its envelope", 0.9, kilobytes("append_wal", ENVELOPE_BYTES), "kB"),
        _at_most("WAL, each further destination", 0.7, kilobytes("append_wal_further"), "kB"),
        _at_most("round trips per delivery, batch 100", 0.03, counters.get("round_trips"), ""),
    ]


def _orbit(figures: OrbitFigures | None) -> list[Goal]:
    found = () if figures is None else figures.deliveries
    latency = figures.latencies[0].took if figures is not None and figures.latencies else None

    def rate(subscriptions: int) -> float | None:
        fresh = [one for one in found if one.settings.subscriptions == subscriptions and not one.settings.hold_snapshot]
        return fresh[0].per_second if fresh else None

    def kept() -> float | None:
        old = [one for one in found if one.settings.hold_snapshot]
        return _ratio(old[0].last_per_second, old[0].first_per_second) if old else None

    return [
        _at_least("Orbit: leased and acknowledged, 1 subscription", 5_000, rate(1), "/s"),
        _at_least("Orbit: leased and acknowledged, 4 subscriptions", 10_000, rate(4), "/s"),
        _at_least("Orbit: old snapshot held, rate kept", 0.9, kept()),
        _at_most("Orbit: commit to handler at 100/s, p99", 50.0, None if latency is None else latency.p99, "ms"),
    ]


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None or theirs == 0 else ours / theirs
