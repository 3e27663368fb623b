"""Metrics keep the names of the catalog and a bounded number of series, whatever is counted."""

from __future__ import annotations

import re
import threading

import pytest

from seapost.telemetry import catalog
from seapost.telemetry.labels import LabelGuard
from seapost.telemetry.metrics import Metrics, release


def lines(metrics: Metrics, name: str) -> list[str]:
    """The samples of one metric."""
    return [line for line in metrics.exposition().decode().splitlines() if line.startswith(name + "{")]


@pytest.mark.req("MET-01", "MET-02", "MET-03", "MET-05")
def test_every_metric_of_the_catalog_is_exposed_and_no_other() -> None:
    """The exposition names exactly the metrics of the catalog, with their help texts."""
    text = Metrics().exposition().decode()
    exposed = set(re.findall(r"^# HELP (\S+) ", text, re.MULTILINE))
    assert exposed == {metric.name for metric in catalog.METRICS}
    assert len({metric.name for metric in catalog.METRICS}) == len(catalog.METRICS)


@pytest.mark.req("MET-06", "MET-07", "SEC-17", "NEG-38")
def test_no_label_can_name_anybody() -> None:
    """The labels of all metrics come from one short list without identities of any kind."""
    labels = {label for metric in catalog.METRICS for label in metric.labels}
    assert labels == {
        "destination",
        "event_type",
        "schema_version",
        "outcome",
        "code",
        "consumer",
        "state",
        "version",
        "region",
        "part",
    }


PLACED = 'destination="billing",event_type="order.placed@1"'
SHOWN = [
    'seapost_deliveries_claimed_total{destination="billing"} 3.0',
    f'seapost_deliveries_settled_total{{code="",{PLACED},outcome="acknowledged",schema_version="1"}} 2.0',
    f'seapost_deliveries_settled_total{{code="timeout",{PLACED},outcome="retryable",schema_version="1"}} 1.0',
    'seapost_deliveries_recovered_total{destination="billing"} 1.0',
    'seapost_settles_stale_total{destination="billing"} 1.0',
    'seapost_settles_invalid_total{destination="billing"} 1.0',
    'seapost_deliveries_pending{destination="billing"} 7.0',
    'seapost_delivery_oldest_pending_seconds{destination="billing"} 0.0',
    'seapost_delivery_starved_seconds{destination="billing"} 2.5',
    'seapost_breaker_state{destination="billing",state="open"} 1.0',
    'seapost_breaker_state{destination="billing",state="closed"} 0.0',
    'seapost_backpressure_closed{destination="billing"} 1.0',
    "seapost_listener_connected 1.0",
    f'seapost_worker_info{{part="dispatcher",region="eu-1",version="{release()}"}} 1.0',
    'seapost_worker_healthy{part="dispatcher"} 1.0',
]


@pytest.mark.req("MET-01", "MET-02", "MET-03")
def test_what_is_counted_is_shown() -> None:
    """Claims, results, recoveries and the backlog of a destination appear under its name."""
    metrics = Metrics()
    metrics.claimed("billing", 3)
    metrics.settled("billing", "order.placed@1", "1", "acknowledged", number=2)
    metrics.settled("billing", "order.placed@1", "1", "retryable", "timeout")
    metrics.recovered("billing", 1)
    metrics.stale("billing", 1)
    metrics.refused("billing", 1)
    metrics.backlog("billing", pending=7, oldest_seconds=-0.5, leased=2, unacknowledged=1, starved_seconds=2.5)
    metrics.backpressure("billing", closed=True)
    metrics.breaker("billing", "open")
    metrics.listener(connected=True)
    metrics.worker("dispatcher", region="eu-1")
    metrics.healthy("dispatcher", progressing=True)
    text = metrics.exposition().decode()
    for line in SHOWN:
        assert line in text.splitlines()


def test_consumer_side_is_counted() -> None:
    """Apply latency, results, schema rejects, missing receipts and gaps appear under the consumer's name."""
    metrics = Metrics()
    metrics.apply_seconds("billing", 0.02)
    metrics.received("billing", "applied", number=4)
    metrics.schema_reject("billing", "order.placed@9", "9", "schema_unknown")
    metrics.receipts_missing("billing", 5)
    metrics.revision_gaps("billing", 2)
    metrics.delivery_seconds("billing", 0.1)
    text = metrics.exposition().decode()
    assert 'seapost_consumer_apply_seconds_count{consumer="billing"} 1.0' in text
    assert 'seapost_consumer_received_total{code="",consumer="billing",outcome="applied"} 4.0' in text
    assert 'code="schema_unknown",consumer="billing",event_type="order.placed@9",schema_version="9"} 1.0' in text
    assert 'seapost_consumer_receipts_missing{consumer="billing"} 5.0' in text
    assert 'seapost_consumer_revision_gaps{consumer="billing"} 2.0' in text


@pytest.mark.req("F78", "MET-06")
def test_series_are_bounded_whoever_counts_what() -> None:
    """Ten thousand event types, codes and outcomes end in a bounded number of series; the rest is `other`."""
    metrics = Metrics(distinct_max=20)
    for number in range(10_000):
        metrics.settled("billing", f"event-{number}@1", str(number), f"outcome-{number}", f"error text {number}")
    shown = lines(metrics, "seapost_deliveries_settled_total")
    assert len(shown) == 21
    assert sum(float(line.rsplit(" ", 1)[1]) for line in shown) == 10_000
    assert all('outcome="other"' in line and 'code="other"' in line for line in shown)
    assert len(metrics.exposition()) < 100_000


@pytest.mark.req("F78")
def test_strange_values_never_become_labels() -> None:
    """Empty, over-long and unprintable values are shown as `other`; a value once shown stays."""
    guard = LabelGuard(distinct_max=2)
    assert [guard.admit("a", value) for value in ("", "x" * 300, "line\nfeed", "\x1b[31m")] == ["other"] * 4
    assert [guard.admit("a", value) for value in ("one", "two", "three", "one")] == ["one", "two", "other", "one"]
    assert guard.admit("b", "three") == "three"


def test_counting_from_many_threads_loses_nothing() -> None:
    """Handlers in threads count into the same set without losing any."""
    metrics = Metrics()

    def count() -> None:
        for number in range(500):
            metrics.received(f"consumer-{number % 7}", "applied")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(float(line.rsplit(" ", 1)[1]) for line in lines(metrics, "seapost_consumer_received_total")) == 2_000
