"""The templates of receipts write exactly what the contracts write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seapost.contracts.ack import build_ack
from seapost.contracts.identifiers import (
    EVENT_TYPE_PATTERN,
    NAME_PATTERN,
    VERSION_PATTERN,
    write_timestamp,
)
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS
from seapost.contracts.receipts import ConsumerReceipt
from seapost.inbox.receipts import ConsumerReceiptWriter, ReceiptSubject
from seapost.model.outcome import Acknowledged
from tests.kit import builders


def whole(pattern: str, length_max: int) -> st.SearchStrategy[str]:
    """Texts that a contract's pattern takes as a whole."""
    body = pattern.removeprefix("^").removesuffix("$").replace("[0-9]", "[0123456789]")
    return st.from_regex(rf"\A{body}\Z").filter(lambda text: 0 < len(text) <= length_max and text.isascii())


NAMES = whole(NAME_PATTERN, 100)
SUBJECTS = st.builds(
    ReceiptSubject,
    st.just(str(builders.new_event_id())),
    whole(EVENT_TYPE_PATTERN, 200),
    whole(VERSION_PATTERN, 32),
    st.sampled_from(["0" * 64, "0123456789abcdef" * 4]),
)
MOMENTS = st.datetimes(timezones=st.just(UTC))


def by_contract(
    name: str, destination: str, subject: ReceiptSubject, reference: str, moment: datetime
) -> ConsumerReceipt:
    """The same receipt, built by its contract."""
    return ConsumerReceipt.assemble(
        destination=destination,
        consumer_name=name,
        event_id=subject.event_id,
        event_type=subject.event_type,
        event_schema_version=subject.schema_version,
        event_envelope_digest_algorithm_version="jcs-sha256-v1",
        event_envelope_sha256=subject.digest,
        consumer_receipt_ref=reference,
        outcome="applied",
        committed_at=write_timestamp(moment),
    )


@pytest.mark.req("RCP-14", "DLV-06", "AMB-38")
@given(NAMES, NAMES, SUBJECTS, MOMENTS)
def test_templates_equal_the_contracts(name: str, destination: str, subject: ReceiptSubject, moment: datetime) -> None:
    """Candidate, receipt and acknowledgement are byte for byte those of the contracts, for every legal value."""
    writer = ConsumerReceiptWriter(name, destination)
    reference = writer.reference(subject)
    receipt = by_contract(name, destination, subject, reference, moment)
    candidate = writer.candidate(subject)
    assert candidate == receipt.candidate_bytes()
    answer = writer.answer(subject, candidate=candidate, reference=reference, committed_at=moment)
    assert answer == Acknowledged(receipt.canonical(), build_ack(DEFAULT_RECEIPTS, receipt))


@pytest.mark.req("DLV-20")
def test_receipt_of_another_release_is_returned_as_it_was() -> None:
    """A stored receipt with another reference or another destination is answered from what is stored."""
    subject = ReceiptSubject("01890a5d-ac96-774b-bcce-b302099a8057", "order.placed@1", "1", "a" * 64)
    moment = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    stored = by_contract("billing", "old_destination", subject, 'an "old" référence', moment)
    answer = ConsumerReceiptWriter("billing", "billing").answer(
        subject,
        candidate=stored.candidate_bytes(),
        reference=stored.consumer_receipt_ref,
        committed_at=moment,
    )
    assert answer == Acknowledged(stored.canonical(), build_ack(DEFAULT_RECEIPTS, stored))
