"""What a run measures: sizes and repetitions, from the environment, with limits."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes of one run.

    Attributes:
        events: events per workload and repetition.
        repetitions: interleaved repetitions; the report shows medians.
        payload_bytes: size of the filler in each payload.
        dsn: a server to measure on; absent, an embedded one with fsync on.
    """

    events: int
    repetitions: int
    payload_bytes: int
    dsn: str | None

    @classmethod
    def from_environment(cls) -> Settings:
        """Read `BENCH_…` for each field; raise ValueError for a number beyond its limits."""
        return cls(
            events=_bounded("BENCH_EVENTS", 20_000, 1_000, 1_000_000),
            repetitions=_bounded("BENCH_REPETITIONS", 3, 1, 21),
            payload_bytes=_bounded("BENCH_PAYLOAD_BYTES", 500, 10, 100_000),
            dsn=os.environ.get("BENCH_DSN"),
        )


def _bounded(name: str, default: int, low: int, high: int) -> int:
    value = int(os.environ.get(name, default))
    if not low <= value <= high:
        message = f"{name} must be from {low} to {high}, not {value}"
        raise ValueError(message)
    return value
