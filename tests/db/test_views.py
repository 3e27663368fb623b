"""The logical structure of STO-05 to STO-11: every column is readable in every state of a delivery."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kit import builders
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED
from tests.kit.clock import START, Clock
from tests.kit.kernel import Kernel
from tests.kit.tenants import append_of, fair, tenant_in

COLUMNS: dict[str, str] = {
    "outbox_events": "event_id event_type schema_version delivery_set_version delivery_set_definition_schema_version"
    " delivery_set_definition_digest_algorithm_version delivery_set_definition_digest aggregate_kind aggregate_id"
    " aggregate_revision tenant_kind tenant_id workspace_id project_id correlation_id causation_id operation_id"
    " event_payload event_envelope event_envelope_digest_algorithm_version event_envelope_sha256 occurred_at created_at"
    " published_at",
    "delivery_set_versions": "delivery_set_version delivery_set_definition_schema_version"
    " delivery_set_definition_digest_algorithm_version delivery_set_definition_digest status activated_at"
    " source_release",
    "delivery_set_members": "delivery_set_version event_type schema_version destination consumer_name mandatory"
    " expected_receipt_type expected_receipt_schema_version projection_target_state projection_name projection_version",
    "outbox_deliveries": "event_id delivery_set_version destination consumer_name expected_receipt_type"
    " expected_receipt_schema_version required_projection_name required_projection_version mandatory status"
    " available_at"
    " lease_owner lease_token lease_expires_at current_attempt_id attempt_count last_attempt_at delivered_at"
    " last_error_code last_error_ref ack_consumer_name ack_receipt_type ack_receipt_key ack_receipt_schema_version"
    " ack_receipt_digest_algorithm_version ack_receipt_digest ack_event_envelope_digest_algorithm_version"
    " ack_event_envelope_sha256",
    "outbox_delivery_attempt_starts": "attempt_id destination event_id lease_token started_at",
    "outbox_delivery_attempt_finishes": "attempt_id finished_at outcome retry_disposition normalized_error_code"
    " sanitized_error_ref",
    "outbox_quarantine": "destination event_id reason event_envelope_digest_algorithm_version event_envelope_sha256"
    " quarantined_at acknowledged_at case_id",
    "audit_records": "audit_id actor action subject_ref request_digest occurred_at",
}

# Which of the columns that are empty in some states have a value.
FILLED = (
    "select attempt_count, last_error_code, concat_ws(' ', case when available_at is not null then 'due' end,"
    " case when lease_owner is not null then 'owner' end, case when lease_token is not null then 'token' end,"
    " case when lease_expires_at is not null then 'deadline' end,"
    " case when current_attempt_id is not null then 'attempt' end,"
    " case when last_attempt_at is not null then 'attempted' end,"
    " case when delivered_at is not null then 'delivered' end,"
    " case when ack_receipt_key is not null then 'receipt' end,"
    " case when ack_receipt_digest is not null then 'digest' end,"
    " case when ack_event_envelope_sha256 is not null then 'event' end)"
    " from seapost.outbox_deliveries where status = %s"
)


@pytest.mark.req("STO-04", "STO-05", "STO-06", "STO-07", "STO-08", "STO-09", "STO-10", "STO-11", "AMB-01", "REF-14")
@pytest.mark.parametrize("view", COLUMNS)
def test_every_named_column_exists(shared_kernel: Kernel, view: str) -> None:
    """Each column that the specification names is a column of the view of that name."""
    names = shared_kernel.rows(
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped",
        f"seapost.{view}",
    )
    assert set(COLUMNS[view].split()) - {row[0] for row in names} == set()


@pytest.mark.req("STO-05", "REF-01", "APP-03")
def test_an_event_shows_its_envelope_column_by_column(kernel: Kernel) -> None:
    """What the view shows is what the bytes say, optional parts included."""
    identity = str(builders.new_event_id())
    kernel.append(
        builders.envelope(
            SHIPPED,
            eventId=identity,
            aggregate={"kind": "order", "id": "order-17", "revision": 4},
            tenant={"tenantKind": "user", "tenantId": "t", "workspaceId": "w", "projectId": "p"},
            correlation={"correlationId": "c1", "causationId": "c2", "operationId": "o"},
            payload={"total": "19.90"},
        )
    )
    assert kernel.row(
        "select event_id::text, event_type, schema_version, producer, aggregate_kind, aggregate_id, aggregate_revision,"
        " tenant_kind, tenant_id, workspace_id, project_id, correlation_id, causation_id, operation_id, traceparent,"
        " event_payload, occurred_at, delivery_set_version from seapost.outbox_events"
    )[:16] == (
        identity, SHIPPED, "1", "shop", "order", "order-17", 4,
        "user", "t", "w", "p", "c1", "c2", "o", None, {"total": "19.90"},
    )  # fmt: skip


@pytest.mark.req("STO-08", "STO-19", "AMB-24", "AMB-32", "SET-18")
def test_a_delivery_is_readable_in_each_of_its_four_states(kernel: Kernel, clock: Clock) -> None:
    """Pending, pending again, leased, acknowledged and quarantined each show exactly the columns that mean
    something.
    """
    kernel.append_new(PLACED)
    assert kernel.row(FILLED, "pending") == (0, None, "due")
    claim = kernel.claim_one()
    assert kernel.row(FILLED, "leased") == (1, None, "owner token deadline attempt attempted")
    kernel.retry(claim, code="timeout")
    assert kernel.row(FILLED, "pending") == (1, "timeout", "due attempted")
    kernel.acknowledge(kernel.claim_one())
    assert kernel.row(FILLED, "acknowledged") == (2, "timeout", "attempt attempted delivered receipt digest event")
    kernel.append_new(PLACED)
    kernel.quarantine(kernel.claim_one(), code="schema_invalid")
    assert kernel.row(FILLED, "quarantined") == (1, "schema_invalid", "attempt attempted")
    frozen = kernel.rows(
        "select distinct delivery_set_version, consumer_name, mandatory, expected_receipt_type,"
        " expected_receipt_schema_version, created_at from seapost.outbox_deliveries"
    )
    assert frozen == [("1", "billing_consumer", True, "ConsumerReceipt", "1", START)]
    assert clock.now == START


@pytest.mark.req("MET-01")
def test_destination_status_counts_what_is_there(kernel: Kernel, clock: Clock) -> None:
    """Pending, due, suspects, leases and quarantines per destination, with the oldest times; unused ones show zero."""
    kernel.append_new(PLACED, 6)
    clock.advance(10)
    first, second, third, *_ = kernel.claim(limit=4)
    kernel.retry(first, delay=timedelta(seconds=60))
    kernel.retry(second, lost=True)
    kernel.quarantine(third)
    columns = "pending, due, oldest_created_at, next_available_at, suspects, leased, oldest_expiry_at, quarantined"
    rows = kernel.rows("select destination, " + columns + " from seapost.destination_status order by 1")  # noqa: S608 - literals
    assert rows == [
        (BILLING, 4, 3, START, START, 1, 1, clock.now + timedelta(seconds=30), 1),
        (SEARCH, 0, 0, None, None, 0, 0, None, 0),
    ]


@pytest.mark.req("MET-01", "F23")
def test_destination_status_shows_who_starves(kernel: Kernel, clock: Clock) -> None:
    """Starved is the oldest due delivery outside the lanes that hold more than their share; of one lane, the oldest."""
    starved = (
        "select fair_lanes, lanes_due, starved_since from seapost.destination_status where destination = 'billing'"
    )
    assert kernel.row(starved) == (1, 0, None)
    append_of(kernel, "loud", 5)
    assert kernel.row(starved) == (1, 1, START)
    kernel.claim()
    fair(kernel, 8)
    append_of(kernel, tenant_in(kernel, 2, 8), 50)
    quiet_since = clock.advance(10)
    append_of(kernel, tenant_in(kernel, 5, 8), 2)
    clock.advance(10)
    append_of(kernel, tenant_in(kernel, 6, 8), 1)
    assert kernel.row(starved) == (8, 3, quiet_since)
