"""Every metric and log event of Seapost by name: the only place where such names are written.

These names are public: dashboards and alerts are built on them, so a name here is never changed and its
meaning never shifts. The reference page of the documentation is made from this file.

Labels carry no identities (MET-06): no tenant, user, event, trace or attempt ever becomes a label.
Identifiers may stand in log fields only (MET-07).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SECONDS_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Kind(StrEnum):
    """How a metric moves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, what it counts, and the labels that split it."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


PENDING: Final = Metric(
    "seapost_deliveries_pending", Kind.GAUGE, "Deliveries waiting for their next attempt (MET-01).", ("destination",)
)
OLDEST_PENDING: Final = Metric(
    "seapost_delivery_oldest_pending_seconds",
    Kind.GAUGE,
    "Age of the oldest delivery that is waiting, in seconds; 0 when none is (MET-01).",
    ("destination",),
)
STARVED: Final = Metric(
    "seapost_delivery_starved_seconds",
    Kind.GAUGE,
    "Time for which a due delivery has waited in a fair lane that holds no more than an equal share of what is due.",
    ("destination",),
)
LEASED: Final = Metric(
    "seapost_deliveries_leased", Kind.GAUGE, "Deliveries that some dispatcher holds at this moment.", ("destination",)
)
QUARANTINED: Final = Metric(
    "seapost_deliveries_quarantined_unacknowledged",
    Kind.GAUGE,
    "Quarantined deliveries that no operator has acknowledged yet (RTY-05).",
    ("destination",),
)
BACKPRESSURE: Final = Metric(
    "seapost_backpressure_closed",
    Kind.GAUGE,
    "1 while appends to the destination are refused or slowed because too many deliveries wait; only with a limit.",
    ("destination",),
)
CLAIMED: Final = Metric(
    "seapost_deliveries_claimed_total", Kind.COUNTER, "Deliveries claimed (MET-02).", ("destination",)
)
SETTLED: Final = Metric(
    "seapost_deliveries_settled_total",
    Kind.COUNTER,
    "Attempts finished, by outcome and normalized error code; code is empty for acknowledged (MET-02, MET-03).",
    ("destination", "event_type", "schema_version", "outcome", "code"),
)
RECOVERED: Final = Metric(
    "seapost_deliveries_recovered_total",
    Kind.COUNTER,
    "Leases that expired and were recovered (MET-02).",
    ("destination",),
)
STALE: Final = Metric(
    "seapost_settles_stale_total",
    Kind.COUNTER,
    "Results refused and dropped because the lease had moved on.",
    ("destination",),
)
REFUSED: Final = Metric(
    "seapost_settles_invalid_total",
    Kind.COUNTER,
    "Acknowledgements that did not match the frozen member or event; alert on any (REF-07).",
    ("destination",),
)
DELIVERY_SECONDS: Final = Metric(
    "seapost_delivery_call_seconds", Kind.HISTOGRAM, "Duration of one call to a consumer, in seconds.", ("destination",)
)
APPLY_SECONDS: Final = Metric(
    "seapost_consumer_apply_seconds",
    Kind.HISTOGRAM,
    "Duration of one handler call inside the consumer's transaction, in seconds (MET-04).",
    ("consumer",),
)
RECEIVED: Final = Metric(
    "seapost_consumer_received_total",
    Kind.COUNTER,
    "Deliveries received by this consumer: applied, duplicate, retryable or non_retryable (MET-04).",
    ("consumer", "outcome", "code"),
)
SCHEMA_REJECTS: Final = Metric(
    "seapost_consumer_schema_rejects_total",
    Kind.COUNTER,
    "Events refused because their type, version or payload is unknown or invalid here (MET-04).",
    ("consumer", "event_type", "schema_version", "code"),
)
NOT_APPLIED: Final = Metric(
    "seapost_consumer_receipts_missing",
    Kind.GAUGE,
    "Events in the source without a receipt of this consumer, as last counted (MET-04).",
    ("consumer",),
)
REVISION_GAPS: Final = Metric(
    "seapost_consumer_revision_gaps", Kind.GAUGE, "Open revision gaps of this consumer (MET-04).", ("consumer",)
)
LISTENER: Final = Metric(
    "seapost_listener_connected", Kind.GAUGE, "1 while the wake-up connection is up; polling goes on without it."
)
BREAKER: Final = Metric(
    "seapost_breaker_state",
    Kind.GAUGE,
    "1 for the state the destination's circuit breaker is in, 0 for the others.",
    ("destination", "state"),
)
WORKER: Final = Metric(
    "seapost_worker_info", Kind.GAUGE, "1; says which release runs where (MET-05).", ("version", "region", "part")
)
HEALTHY: Final = Metric(
    "seapost_worker_healthy", Kind.GAUGE, "1 while this part of the process makes progress (MET-05).", ("part",)
)

METRICS: Final = (
    PENDING,
    OLDEST_PENDING,
    STARVED,
    LEASED,
    QUARANTINED,
    BACKPRESSURE,
    CLAIMED,
    SETTLED,
    RECOVERED,
    STALE,
    REFUSED,
    DELIVERY_SECONDS,
    APPLY_SECONDS,
    RECEIVED,
    SCHEMA_REJECTS,
    NOT_APPLIED,
    REVISION_GAPS,
    LISTENER,
    BREAKER,
    WORKER,
    HEALTHY,
)

OUTCOMES: Final = frozenset({"acknowledged", "applied", "duplicate", "retryable", "non_retryable", "recovered"})
BREAKER_STATES: Final = ("closed", "open", "half_open")


class LogEvent(StrEnum):
    """The `event` field of a log record; what happened, never a sentence with values in it."""

    DISPATCHER_STARTED = "dispatcher.started"
    DISPATCHER_STOPPING = "dispatcher.stopping"
    DISPATCHER_STOPPED = "dispatcher.stopped"
    CLAIM_FAILED = "dispatcher.claim_failed"
    SETTLE_FAILED = "dispatcher.settle_failed"
    SETTLE_STALE = "dispatcher.settle_stale"
    SETTLE_INVALID = "dispatcher.settle_invalid"
    ACK_INVALID = "dispatcher.ack_invalid"
    DELIVERY_QUARANTINED = "dispatcher.delivery_quarantined"
    LEASES_RECOVERED = "dispatcher.leases_recovered"
    LEASES_LOST = "dispatcher.leases_lost"
    RECOVER_FAILED = "dispatcher.recover_failed"
    RENEW_FAILED = "dispatcher.renew_failed"
    BREAKER_OPENED = "dispatcher.breaker_opened"
    BREAKER_CLOSED = "dispatcher.breaker_closed"
    LISTENER_CONNECTED = "listener.connected"
    LISTENER_LOST = "listener.lost"
    TRANSPORT_FAILED = "transport.failed"
    TRANSPORT_RESPONSE_REFUSED = "transport.response_refused"
    TRANSPORT_ADDRESS_REFUSED = "transport.address_refused"
    HANDLER_FAILED = "inbox.handler_failed"
    TRANSACTION_FAILED = "inbox.transaction_failed"
    HANDLER_REJECTED = "inbox.handler_rejected"
    EVENT_REFUSED = "inbox.event_refused"
    DIGEST_CONFLICT = "inbox.digest_conflict"
    INBOX_UNAVAILABLE = "inbox.unavailable"
    SERVER_STARTED = "server.started"
    SERVER_STOPPED = "server.stopped"
    REQUEST_REFUSED = "server.request_refused"
    REQUEST_FAILED = "server.request_failed"
    SCHEMA_MIGRATED = "installer.migrated"
    ROUTES_ACTIVATED = "routes.activated"
    LIBRARY_WARNING = "library.warning"
    LIBRARY_ERROR = "library.error"
