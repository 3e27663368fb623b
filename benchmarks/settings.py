"""What a run measures: sizes and repetitions of the full and of the quick run, some of them from the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Final, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Sizes of one run.

    Attributes:
        name: `full` or `quick`.
        repetitions: interleaved repetitions; the report shows medians.
        seconds: how long one append or drain measurement should take; the number of jobs follows from it.
        jobs_max: most jobs of one measurement, however fast a system is.
        processes: numbers of worker processes beyond one; `rival_processes` is measured for the rivals too.
        latency_events: events appended at 50 per second, one by one.
        producer_seconds: how long the concurrent producers run.
        churn: deliveries made and finished behind an old snapshot.
        rows: events finished, and events waiting, for the workloads on big tables (`BENCH_ROWS`).
        dsn: a server to measure on (`BENCH_DSN`); absent, an embedded one with fsync on.
    """

    name: str
    repetitions: int
    seconds: float
    jobs_max: int
    processes: tuple[int, ...]
    rival_processes: tuple[int, ...]
    latency_events: int
    producer_seconds: float
    churn: int
    rows: int
    dsn: str | None = None

    @classmethod
    def from_environment(cls, *, quick: bool) -> Self:
        """The sizes of a run; raise ValueError for a number beyond its limits."""
        chosen = QUICK if quick else FULL
        return replace(  # pyright: ignore[reportReturnType] - the constants are of this class
            chosen,
            repetitions=_bounded("BENCH_REPETITIONS", chosen.repetitions, 1, 21),
            rows=_bounded("BENCH_ROWS", chosen.rows, 1_000, 20_000_000),
            dsn=os.environ.get("BENCH_DSN"),
        )


def _bounded(name: str, default: int, low: int, high: int) -> int:
    value = int(os.environ.get(name, default))
    if not low <= value <= high:
        message = f"{name} must be from {low} to {high}, not {value}"
        raise ValueError(message)
    return value


FULL: Final = Settings(
    name="full",
    repetitions=3,
    seconds=3.0,
    jobs_max=200_000,
    processes=(2, 4),
    rival_processes=(4,),
    latency_events=1_000,
    producer_seconds=5.0,
    churn=200_000,
    rows=1_000_000,
)
QUICK: Final = Settings(
    name="quick",
    repetitions=3,
    seconds=0.4,
    jobs_max=12_000,
    processes=(2,),
    rival_processes=(),
    latency_events=60,
    producer_seconds=1.0,
    churn=12_000,
    rows=50_000,
)
