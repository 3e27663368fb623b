"""Everything that one run found, and how it becomes a file and comes back from it."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field

from benchmarks.contest import APPEND_MANY, APPEND_ONE, DRAIN, LATENCY, WORKER_CPU, Measured, drain_of
from benchmarks.cost import Cost
from benchmarks.decay import Decay
from benchmarks.entrants import Entrant
from benchmarks.producers import Producers
from orbit.bench.tables import OrbitFigures

PERCENTILE_HIGH = 99


@dataclass(slots=True)
class Results:
    """One run; a part that could not be measured is None, and `failures` says why.

    Attributes:
        latency: milliseconds from the commit of an append to its handler.
        counters: as the gate measures them.
    """

    machine: dict[str, str]
    server: dict[str, str]
    settings: dict[str, object]
    systems: list[Measured] = field(default_factory=list[Measured])
    cost: Cost | None = None
    latency: list[float] | None = None
    producers: Producers | None = None
    old_snapshot: Decay | None = None
    finished: Decay | None = None
    waiting: Decay | None = None
    counters: dict[str, float] | None = None
    orbit: OrbitFigures | None = None
    failures: dict[str, str] = field(default_factory=dict[str, str])

    def median(self, entrant: Entrant, workload: str) -> float | None:
        """The median of one workload of one system."""
        for one in self.systems:
            if one.entrant == entrant:
                return median(one, workload)
        return None

    def document(self) -> dict[str, object]:
        """All raw figures, for the report's JSON."""
        whole: dict[str, object] = {
            name: getattr(self, name) for name in ("machine", "server", "settings", "latency", "counters", "failures")
        }
        for name in ("cost", "producers", "old_snapshot", "finished", "waiting"):
            part = getattr(self, name)
            whole[name] = None if part is None else asdict(part)
        whole["orbit"] = None if self.orbit is None else self.orbit.document()
        whole["systems"] = [
            {
                "name": one.entrant.name,
                "rival": one.entrant.is_rival,
                "versions": one.versions,
                "settings": one.settings,
                "absent": one.absent,
                "figures": one.figures,
            }
            for one in self.systems
        ]
        return whole


def median(measured: Measured, workload: str) -> float | None:
    """The median of a workload; None when it was not measured."""
    found = measured.figures.get(workload)
    return statistics.median(found) if found else None


def percentile(figures: list[float], percent: int) -> float:
    """The smallest figure that so many percent do not exceed."""
    ordered = sorted(figures)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def workloads(results: Results) -> list[str]:
    """The workloads of the contest, in the order of the report."""
    extra = sorted({name for one in results.systems for name in one.figures if name.startswith(drain_of(2)[:7])})
    return [APPEND_ONE, APPEND_MANY, DRAIN, *(name for name in extra if name != DRAIN), WORKER_CPU, LATENCY]
