"""Measurements as rows of text, for the command and for the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from orbit.bench.deliveries import DeliveryFigures, LatencyFigures
from orbit.bench.figures import Spread
from orbit.bench.result_stream import StreamFigures, StreamSettings

STREAM_HEADS: Final = (
    "writers",
    "what",
    "per second",
    "p50 / p95 / p99 ms",
    "wait per transaction, queue · stream · quota ms",
    "waited so far p50 / p95 / p99 ms, queue · stream · quota",
    "lock timeouts",
    "stream pages",
)
DELIVERY_HEADS: Final = ("subscriptions", "what", "deliveries per second", "first tenth", "last tenth", "kept")
LATENCY_HEADS: Final = ("results per second", "reached", "commit to handler p50 / p95 / p99 ms", "worst ms")

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrbitFigures:
    """Everything that one run measured."""

    streams: Sequence[StreamFigures] = ()
    deliveries: Sequence[DeliveryFigures] = ()
    latencies: Sequence[LatencyFigures] = ()

    def document(self) -> dict[str, object]:
        """All raw figures; times are milliseconds, rates per second."""
        return {
            "streams": [asdict(one) for one in self.streams],
            "deliveries": [asdict(one) for one in self.deliveries],
            "latencies": [asdict(one) for one in self.latencies],
        }


def stream_rows(figures: Sequence[StreamFigures]) -> list[Row]:
    """A row per measurement of the result stream."""
    return [
        (
            str(one.settings.writers),
            described(one.settings),
            f"{one.per_second:,.0f}",
            _spread(one.took),
            " · ".join(f"{one.waits[row].mean_ms:.2f}" for row in ("queue", "stream", "quota")),
            " · ".join(_spread(one.waits[row].so_far) for row in ("queue", "stream", "quota")),
            str(one.lock_timeouts),
            f"{one.stream_pages_before} → {one.stream_pages_after}",
        )
        for one in figures
    ]


def delivery_rows(figures: Sequence[DeliveryFigures]) -> list[Row]:
    """A row per measurement of deliveries."""
    return [
        (
            str(one.settings.subscriptions),
            f"{one.settings.deliveries:,} each"
            + (f", {one.settings.connections} connections each" if one.settings.connections > 1 else "")
            + (", old snapshot held" if one.settings.hold_snapshot else ""),
            f"{one.per_second:,.0f}",
            f"{one.first_per_second:,.0f}",
            f"{one.last_per_second:,.0f}",
            f"{one.last_per_second / one.first_per_second:.0%}" if one.first_per_second else "-",
        )
        for one in figures
    ]


def latency_rows(figures: Sequence[LatencyFigures]) -> list[Row]:
    """A row per measurement of latency."""
    return [(f"{one.asked:g}", f"{one.made:.0f}", _spread(one.took), f"{one.took.worst:.1f}") for one in figures]


def described(settings: StreamSettings) -> str:
    """What a measurement of the stream did, beside the number of its writers."""
    parts = ["submissions under a quota" if settings.submits else f"confirmations, {settings.commit} commit"]
    if settings.commit_delay is not None:
        parts.append(f"commit_delay {settings.commit_delay}")
    if settings.namespaces > 1:
        parts.append(f"{settings.namespaces} namespaces")
    if settings.queues > 1:
        parts.append(f"{settings.queues} queues each")
    if not settings.submits:
        parts.append(f"{settings.result_bytes:,} B")
    if settings.hold_snapshot:
        parts.append("old snapshot held")
    return ", ".join(parts)


def _spread(spread: Spread) -> str:
    return f"{spread.p50:.1f} / {spread.p95:.1f} / {spread.p99:.1f}" if spread.count else "-"
