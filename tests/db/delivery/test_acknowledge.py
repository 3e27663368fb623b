"""`delivery_acknowledge_v1`: a receipt that matches the frozen member, or no acknowledgement at all."""

from __future__ import annotations

import json
from datetime import timedelta

import psycopg
import pytest
from psycopg import IsolationLevel

from seapost.inbox.receipts import ConsumerReceiptWriter, ReceiptSubject
from tests.kit import builders
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED
from tests.kit.clock import Clock
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, refused

OTHER_EVENT = "01950000-0000-7000-8000-000000000000"

WRONG_FIELDS = {
    "event": {"eventId": OTHER_EVENT},
    "no event": {"eventId": None},
    "event digest": {"eventEnvelopeSha256": "0" * 64},
    "event digest in capitals": {"eventEnvelopeSha256": "A" * 64},
    "digest algorithm": {"eventEnvelopeDigestAlgorithmVersion": "sha256"},
    "destination": {"destination": SEARCH},
    "consumer": {"consumerName": "search_consumer"},
    "projection name": {"projectionName": "orders"},
    "projection": {"projectionName": "orders", "projectionVersion": "1"},
}


@pytest.mark.req("DLV-12", "STO-22", "CLM-06", "AMB-01", "AMB-24")
def test_an_acknowledgement_writes_finish_receipt_and_state_together(kernel: Kernel, clock: Clock) -> None:
    """The single successful finish, the complete receipt quad and the terminal state appear in one call."""
    (event_id,) = kernel.append_new()
    claim = kernel.claim_one()
    receipt = builders.receipt_for(claim)
    clock.advance(2)
    assert kernel.acknowledge(claim) == []
    assert kernel.row(
        "select status, delivered_at, lease_owner, lease_token, lease_expires_at, current_attempt_id,"
        " ack_consumer_name, ack_receipt_type, ack_receipt_key, ack_receipt_schema_version,"
        " ack_receipt_digest_algorithm_version, ack_receipt_digest, ack_event_envelope_digest_algorithm_version,"
        " ack_event_envelope_sha256 from seapost.outbox_deliveries where event_id = %s",
        event_id,
    ) == (
        "acknowledged",
        clock.now,
        None,
        None,
        None,
        claim.fence.attempt_id,
        "billing_consumer",
        "ConsumerReceipt",
        f"receipt-{event_id}",
        "1",
        "jcs-sha256-v1",
        builders.digest(receipt).hex(),
        "jcs-sha256-v1",
        claim.event_digest.hex(),
    )
    assert kernel.rows(
        "select attempt_id, finished_at, outcome, retry_disposition, normalized_error_code, sanitized_error_ref"
        " from seapost.outbox_delivery_attempt_finishes"
    ) == [(claim.fence.attempt_id, clock.now, "acknowledged", "none", None, None)]


@pytest.mark.req("PUB-01", "PUB-04", "PUB-05", "PUB-10", "NEG-10", "SET-35")
def test_the_event_is_published_by_its_last_mandatory_acknowledgement(kernel: Kernel, clock: Clock) -> None:
    """The first of two acknowledgements commits and leaves published_at empty; the last sets it to its own time,
    once.
    """
    (event_id,) = kernel.append_new(SHIPPED)
    kernel.acknowledge(kernel.claim_one(BILLING))
    assert (kernel.status(event_id, BILLING), kernel.published_at(event_id)) == ("acknowledged", None)
    last = kernel.claim_one(SEARCH)
    assert kernel.published_at(event_id) is None
    moment = clock.advance(5)
    kernel.acknowledge(last)
    assert kernel.published_at(event_id) == moment


@pytest.mark.req("NEG-10", "PUB-04", "STO-16")
def test_a_quarantined_delivery_keeps_its_event_unpublished(kernel: Kernel) -> None:
    """Quarantine is not success: with one delivery isolated and the other acknowledged, published_at stays empty."""
    for first, second in ((BILLING, SEARCH), (SEARCH, BILLING)):
        (event_id,) = kernel.append_new(SHIPPED)
        kernel.quarantine(kernel.claim_one(first))
        kernel.acknowledge(kernel.claim_one(second))
        assert kernel.published_at(event_id) is None


@pytest.mark.req("DLV-07", "DLV-11", "PUB-03", "PUB-06", "NEG-08", "SET-11")
@pytest.mark.parametrize("case", WRONG_FIELDS)
def test_a_receipt_that_speaks_of_something_else_is_invalid(kernel: Kernel, case: str) -> None:
    """Each coordinate inside the receipt's own bytes must agree; a wrong one is named invalid and nothing changes."""
    (event_id,) = kernel.append_new()
    claim = kernel.claim_one()
    wrong = builders.receipt_for(claim, **WRONG_FIELDS[case])
    assert kernel.acknowledge(claim, receipts=[wrong]) == [(event_id, claim.fence.attempt_id, "invalid")]
    assert kernel.status(event_id) == "leased"
    assert kernel.count("outbox_delivery_attempt_finishes") == 0
    assert kernel.acknowledge(claim) == []


@pytest.mark.req("DLV-07", "DLV-11", "PUB-03", "NEG-08", "SET-20")
@pytest.mark.parametrize(
    "override",
    [{"receipt_type": "OtherReceipt"}, {"schema_version": "2"}, {"algorithm": "sha256"}, {"receipt_type": ""}],
    ids=str,
)
def test_a_receipt_of_another_type_version_or_algorithm_is_invalid(kernel: Kernel, override: dict[str, str]) -> None:
    """Only the receipt type, version and algorithm that the frozen member names can satisfy it."""
    (event_id,) = kernel.append_new()
    claim = kernel.claim_one()
    named = {"receipt_type": "ConsumerReceipt", "schema_version": "1", "algorithm": "jcs-sha256-v1"} | override
    refusals = kernel.acknowledge(
        claim,
        receipt_type=named["receipt_type"],
        schema_version=named["schema_version"],
        algorithm=named["algorithm"],
    )
    assert refusals == [(event_id, claim.fence.attempt_id, "invalid")]
    assert kernel.status(event_id) == "leased"


@pytest.mark.req("NEG-08", "DLV-06")
@pytest.mark.parametrize("receipt", [b"null", b'"ok"', b"200", b"[]", b"{}", b"true"])
def test_json_that_is_no_receipt_is_invalid(kernel: Kernel, receipt: bytes) -> None:
    """A free string, a status code or an empty object satisfies nothing."""
    kernel.append_new()
    claim = kernel.claim_one()
    assert [row[2] for row in kernel.acknowledge(claim, receipts=[receipt])] == ["invalid"]


@pytest.mark.req("DLV-07", "PUB-03")
def test_another_spelling_of_the_right_receipt_counts_as_well(kernel: Kernel) -> None:
    """What the receipt says decides; only the usual spelling is recognised without reading it."""
    (event_id,) = kernel.append_new()
    claim = kernel.claim_one()
    spaced = json.dumps(builders.receipt_document(claim), indent=1).encode()
    assert kernel.acknowledge(claim, receipts=[spaced]) == []
    assert kernel.status(event_id) == "acknowledged"


@pytest.mark.req("DLV-07", "PUB-03")
def test_a_receipt_that_is_no_json_rolls_the_call_back(kernel: Kernel) -> None:
    """Bytes that nobody can read are an error and undo the whole call; without a lease nobody looks at them."""
    kernel.append_new(PLACED, 2)
    good, bad = kernel.claim()
    with pytest.raises(psycopg.DataError):
        kernel.acknowledge(good, bad, receipts=[builders.receipt_for(good), b"applied"])
    kernel.retry(bad)
    refusals = kernel.acknowledge(good, bad, receipts=[builders.receipt_for(good), b"applied"])
    assert refusals == [(bad.fence.event_id, bad.fence.attempt_id, "stale")]


@pytest.mark.req("DLV-07", "PUB-06")
def test_the_usual_receipt_is_the_one_that_consumers_write(shared_lean: Kernel) -> None:
    """The text that needs no reading is byte for byte the canonical candidate of the contract."""
    event_id, digest = "01950000-0000-7000-8000-000000000000", "ab" * 32
    for consumer, destination in (("billing_consumer", BILLING), ("a.b-c_1", "d")):
        head, tail = shared_lean.row(
            "select seapost.delivery_usual_receipt(%s, %s, null, 'order.placed@1', '1.2')", destination, consumer
        )[0]
        subject = ReceiptSubject(event_id, "order.placed@1", "1.2", digest)
        candidate = ConsumerReceiptWriter(consumer, destination).candidate(subject)
        assert f'{head}{digest}","eventId":"{event_id}{tail}'.encode() == candidate


@pytest.mark.req("AMB-52", "PUB-03", "PUB-10")
def test_in_a_batch_only_the_bad_ones_are_refused_and_named(kernel: Kernel) -> None:
    """Good ones commit beside an invalid receipt, a stale attempt and a known event digest that is not the event's."""
    kernel.append_new(PLACED, 5)
    claims = kernel.claim()
    stale, invalid = claims[1], claims[3]
    kernel.retry(stale)
    receipts = [builders.receipt_for(claim) for claim in claims]
    receipts[3] = builders.receipt_for(invalid, consumerName="other")
    refusals = kernel.acknowledge(*claims, receipts=receipts)
    assert sorted(refusals) == sorted(
        [
            (stale.fence.event_id, stale.fence.attempt_id, "stale"),
            (invalid.fence.event_id, invalid.fence.attempt_id, "invalid"),
        ]
    )
    counts = dict(kernel.rows("select status, count(*) from seapost.outbox_deliveries group by 1"))
    assert counts == {"acknowledged": 3, "pending": 1, "leased": 1}
    assert kernel.retry(invalid, code="ack_invalid") == []


@pytest.mark.req("DLV-07", "NEG-08")
def test_the_event_digest_of_the_caller_must_be_the_events(kernel: Kernel) -> None:
    """An acknowledgement for other bytes of the same event id is invalid."""
    kernel.append_new()
    claim = kernel.claim_one()
    digest = builders.digest(b"other bytes")
    assert (
        kernel.value(
            "select result from seapost.delivery_acknowledge_v1(%s, %s, %s, %s, %s, %s, '1', 'jcs-sha256-v1', %s, %s)",
            BILLING,
            [claim.fence.event_id],
            [claim.fence.attempt_id],
            [claim.fence.token],
            [digest],
            "ConsumerReceipt",
            ["r"],
            [builders.receipt_for(claim)],
        )
        == "invalid"
    )


@pytest.mark.req("TST-32", "DLV-15", "NEG-09", "PUB-07")
def test_a_repeated_acknowledgement_is_stale_and_changes_nothing(kernel: Kernel, clock: Clock) -> None:
    """The second acknowledgement of a claim, and a claim twice in one call, write no second fact."""
    (event_id,) = kernel.append_new()
    claim = kernel.claim_one()
    kernel.acknowledge(claim)
    published = kernel.published_at(event_id)
    clock.advance(1)
    assert kernel.acknowledge(claim) == [(event_id, claim.fence.attempt_id, "stale")]
    assert kernel.published_at(event_id) == published
    kernel.append_new()
    twice = kernel.claim_one()
    with refused("23505"):
        kernel.acknowledge(twice, twice)
    assert kernel.status(twice.fence.event_id) == "leased"
    assert kernel.count("outbox_delivery_attempt_finishes") == 1


@pytest.mark.req("AMB-06", "CLM-05")
def test_a_late_acknowledgement_wins_until_recovery(kernel: Kernel, clock: Clock) -> None:
    """Equality of attempt and token decides, not time: an expired lease that nobody recovered may still be
    confirmed.
    """
    early, late = kernel.append_new(PLACED, 2)
    claims = kernel.claim(lease=timedelta(seconds=1))
    clock.advance(3600)
    assert kernel.acknowledge(claims[0]) == []
    assert kernel.recover() == {BILLING: 1}
    assert [row[2] for row in kernel.acknowledge(claims[1])] == ["stale"]
    assert (kernel.status(early), kernel.status(late)) == ("acknowledged", "pending")


@pytest.mark.req("AMB-47")
@pytest.mark.parametrize("isolation", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE], ids=str)
def test_deliveries_are_confirmed_in_read_committed_only(
    kernel: Kernel, each_guard_database: TestDatabase, isolation: IsolationLevel
) -> None:
    """An old snapshot could not see the other last acknowledgement, so it is refused before it writes."""
    kernel.append_new()
    claim = kernel.claim_one()
    worker = Kernel(each_guard_database.connect("dispatcher"))
    worker.connection.isolation_level = isolation
    with refused("SP012"):
        worker.acknowledge(claim)


def test_the_arrays_of_a_call_are_parallel(shared_lean: Kernel) -> None:
    """Arrays of different lengths and null arrays are refused before anything is read."""
    for lists in (
        "'{}', '{1}', '{}', '{}', 'R', '1', 'a', '{}', '{}'",
        "null, '{}', '{}', '{}', 'R', '1', 'a', '{}', '{}'",
    ):
        with refused("SP013", "parallel"):
            shared_lean.run("select seapost.delivery_acknowledge_v1('billing', " + lists + ")")
