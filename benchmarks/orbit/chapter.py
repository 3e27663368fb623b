"""Orbit's part of the report's page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orbit.bench import tables
from orbit.bench.tables import OrbitFigures

STREAM_TEXT = (
    "Confirmations: one call of the database function and its commit, each writer on a connection of its own; the "
    "attempts were claimed before. Confirmations of one queue are serial at the queue's row, those of one namespace at "
    "its stream row. Waits are sampled from the lock table every 5 ms: their mean per transaction, and how long those "
    "who waited had waited when they were looked at. `fenced`: results commit without waiting for the disk one by one, "
    "and receipts go out after one flush for all who wait."
)
DELIVERY_TEXT = (
    "`orbit serve` in a process of its own, one consumer of the SDK per connection in one process, capacity 32, over "
    "real WebSockets; a handler that only counts. Two commits for every 32 deliveries: the lease and the "
    "acknowledgement. `kept` is the rate of the last tenth against the first."
)


def chapter(figures: OrbitFigures) -> str:
    """The tables, in Markdown."""
    return "\n\n".join(
        [
            STREAM_TEXT,
            _table(tables.STREAM_HEADS, tables.stream_rows(figures.streams)),
            DELIVERY_TEXT,
            _table(tables.DELIVERY_HEADS, tables.delivery_rows(figures.deliveries)),
            _table(tables.LATENCY_HEADS, tables.latency_rows(figures.latencies)),
        ]
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
