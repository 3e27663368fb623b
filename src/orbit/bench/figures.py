"""Spreads of measured times; all in milliseconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of `count` measured times, in milliseconds; all 0 when there is none."""

    count: int
    p50: float
    p95: float
    p99: float
    worst: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """The spread of times given in seconds."""
        ordered = sorted(seconds)
        if not ordered:
            return cls(0, 0.0, 0.0, 0.0, 0.0)
        p50, p95, p99 = (_nearest(ordered, share) * MILLISECONDS for share in (0.50, 0.95, 0.99))
        return cls(len(ordered), p50, p95, p99, ordered[-1] * MILLISECONDS)


def _nearest(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
