"""What the process counts, in the names of the catalog.

Every call is cheap, never raises for a strange label, and may come from any thread. The module's functions
count into one set for the process, which `exposition` prints in the Prometheus text format. Functions that
take `event_type` show only a bounded number of them (see `labels`).
"""

from __future__ import annotations

from importlib import metadata
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from seapost.telemetry import catalog
from seapost.telemetry.catalog import Metric
from seapost.telemetry.labels import DISTINCT_MAX, LabelGuard

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """One set of counters with its own registry, so that tests and embedded uses never share one.

    `distinct_max` bounds the distinct values of each open label (destination, consumer, event type …).
    """

    def __init__(self, distinct_max: int = DISTINCT_MAX) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        self._guard = LabelGuard(distinct_max)
        self._pending = self._gauge(catalog.PENDING)
        self._oldest = self._gauge(catalog.OLDEST_PENDING)
        self._starved = self._gauge(catalog.STARVED)
        self._leased = self._gauge(catalog.LEASED)
        self._quarantined = self._gauge(catalog.QUARANTINED)
        self._backpressure = self._gauge(catalog.BACKPRESSURE)
        self._claimed = self._counter(catalog.CLAIMED)
        self._settled = self._counter(catalog.SETTLED)
        self._recovered = self._counter(catalog.RECOVERED)
        self._stale = self._counter(catalog.STALE)
        self._refused = self._counter(catalog.REFUSED)
        self._delivery_seconds = self._histogram(catalog.DELIVERY_SECONDS)
        self._apply_seconds = self._histogram(catalog.APPLY_SECONDS)
        self._apply_series: dict[str, Histogram] = {}  # observed for every event
        self._received = self._counter(catalog.RECEIVED)
        self._schema_rejects = self._counter(catalog.SCHEMA_REJECTS)
        self._not_applied = self._gauge(catalog.NOT_APPLIED)
        self._revision_gaps = self._gauge(catalog.REVISION_GAPS)
        self._listener = self._gauge(catalog.LISTENER)
        self._breaker = self._gauge(catalog.BREAKER)
        self._worker = self._gauge(catalog.WORKER)
        self._healthy = self._gauge(catalog.HEALTHY)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.help, metric.labels, registry=self._registry)

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.name, metric.help, metric.labels, registry=self._registry)

    def _histogram(self, metric: Metric) -> Histogram:
        return Histogram(
            metric.name, metric.help, metric.labels, buckets=catalog.SECONDS_BUCKETS, registry=self._registry
        )

    def backlog(
        self,
        destination: str,
        *,
        pending: int,
        oldest_seconds: float,
        leased: int,
        unacknowledged: int,
        starved_seconds: float = 0.0,
    ) -> None:
        """Show a destination's queue as the database last described it (MET-01)."""
        label = self._guard.admit("destination", destination)
        self._pending.labels(label).set(pending)
        self._oldest.labels(label).set(max(0.0, oldest_seconds))
        self._starved.labels(label).set(max(0.0, starved_seconds))
        self._leased.labels(label).set(leased)
        self._quarantined.labels(label).set(unacknowledged)

    def backpressure(self, destination: str, *, closed: bool) -> None:
        """Show whether appends to a destination with a limit are refused."""
        self._backpressure.labels(self._guard.admit("destination", destination)).set(1 if closed else 0)

    def claimed(self, destination: str, number: int) -> None:
        """Count deliveries claimed (MET-02)."""
        self._claimed.labels(self._guard.admit("destination", destination)).inc(number)

    def settled(
        self,
        destination: str,
        event_type: str,
        schema_version: str,
        outcome: str,
        code: str | None = None,
        number: int = 1,
    ) -> None:
        """Count attempts finished: `acknowledged`, `retryable` or `non_retryable` with its code (MET-02, MET-03)."""
        guard = self._guard
        self._settled.labels(
            guard.admit("destination", destination),
            guard.admit("event_type", event_type),
            guard.admit("schema_version", schema_version),
            guard.outcome(outcome),
            guard.code(code),
        ).inc(number)

    def recovered(self, destination: str, number: int) -> None:
        """Count leases that expired and were recovered (MET-02)."""
        self._recovered.labels(self._guard.admit("destination", destination)).inc(number)

    def stale(self, destination: str, number: int) -> None:
        """Count results dropped because the lease had moved on (CLM-09)."""
        self._stale.labels(self._guard.admit("destination", destination)).inc(number)

    def refused(self, destination: str, number: int) -> None:
        """Count acknowledgements that the database refused as invalid (PUB-03)."""
        self._refused.labels(self._guard.admit("destination", destination)).inc(number)

    def delivery_seconds(self, destination: str, seconds: float) -> None:
        """Record how long one call to a consumer took."""
        self._delivery_seconds.labels(self._guard.admit("destination", destination)).observe(seconds)

    def apply_seconds(self, consumer: str, seconds: float) -> None:
        """Record how long one handler call took (MET-04)."""
        shown = self._guard.admit("consumer", consumer)
        series = self._apply_series.get(shown)
        if series is None:
            series = self._apply_series.setdefault(shown, self._apply_seconds.labels(shown))
        series.observe(seconds)

    def received(self, consumer: str, outcome: str, code: str | None = None, number: int = 1) -> None:
        """Count what a consumer answered (MET-04)."""
        guard = self._guard
        self._received.labels(guard.admit("consumer", consumer), guard.outcome(outcome), guard.code(code)).inc(number)

    def schema_reject(self, consumer: str, event_type: str, schema_version: str, code: str) -> None:
        """Count an event that this consumer cannot read (MET-04)."""
        guard = self._guard
        self._schema_rejects.labels(
            guard.admit("consumer", consumer),
            guard.admit("event_type", event_type),
            guard.admit("schema_version", schema_version),
            guard.code(code),
        ).inc()

    def receipts_missing(self, consumer: str, number: int) -> None:
        """Show how many events of the source this consumer has no receipt for (MET-04)."""
        self._not_applied.labels(self._guard.admit("consumer", consumer)).set(number)

    def revision_gaps(self, consumer: str, number: int) -> None:
        """Show how many revision gaps are open (MET-04)."""
        self._revision_gaps.labels(self._guard.admit("consumer", consumer)).set(number)

    def listener(self, connected: bool) -> None:  # noqa: FBT001 - the name of the metric says what is true
        """Show whether the wake-up connection is up."""
        self._listener.set(1 if connected else 0)

    def breaker(self, destination: str, state: str) -> None:
        """Show the state of a destination's circuit breaker: `closed`, `open` or `half_open`."""
        label = self._guard.admit("destination", destination)
        for candidate in catalog.BREAKER_STATES:
            self._breaker.labels(label, candidate).set(1 if candidate == state else 0)

    def worker(self, part: str, *, version: str | None = None, region: str = "") -> None:
        """Say which release runs here as which part (MET-05); the version is the installed one by default."""
        guard = self._guard
        shown = guard.admit("version", release() if version is None else version)
        place = guard.admit("region", region) if region else ""
        self._worker.labels(shown, place, guard.admit("part", part)).set(1)

    def healthy(self, part: str, progressing: bool) -> None:  # noqa: FBT001 - as in `listener`
        """Show whether a part of the process makes progress (MET-05)."""
        self._healthy.labels(self._guard.admit("part", part)).set(1 if progressing else 0)

    def exposition(self) -> bytes:
        """Everything counted so far, in the Prometheus text format."""
        return generate_latest(self._registry)


def release() -> str:
    """The installed version of Seapost."""
    try:
        return metadata.version("seapost")
    except metadata.PackageNotFoundError:
        return "unknown"


PROCESS: Final = Metrics()
"""The set that this module's functions count into."""

backlog = PROCESS.backlog
backpressure = PROCESS.backpressure
claimed = PROCESS.claimed
settled = PROCESS.settled
recovered = PROCESS.recovered
stale = PROCESS.stale
refused = PROCESS.refused
delivery_seconds = PROCESS.delivery_seconds
apply_seconds = PROCESS.apply_seconds
received = PROCESS.received
schema_reject = PROCESS.schema_reject
receipts_missing = PROCESS.receipts_missing
revision_gaps = PROCESS.revision_gaps
listener = PROCESS.listener
breaker = PROCESS.breaker
worker = PROCESS.worker
healthy = PROCESS.healthy
exposition = PROCESS.exposition
