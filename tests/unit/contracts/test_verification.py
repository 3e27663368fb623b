"""A delivery is acknowledged only by a receipt that matches the frozen member and the stored event."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seapost.contracts.canonical import encode
from seapost.contracts.envelope import Envelope
from seapost.contracts.receipt_registry import ReceiptRegistry
from seapost.contracts.receipts import ConsumerReceipt, Receipt
from seapost.contracts.verification import VerifiedReceipt, verify_acknowledgement, verify_by_contract
from seapost.model.delivery import Claim
from seapost.model.errors import ContractError, DigestMismatch, UnknownContract
from seapost.model.outcome import Acknowledged
from tests.kit.contracts import (
    OTHER_EVENT_ID,
    ack,
    claim,
    member,
    prepared,
    receipt,
    receipt_registry,
    search_receipt,
)
from tests.kit.damage import damaged

SEARCH = member("search", "search_projector", projection=("search", "3"))


def _verify(of: Claim, given: Receipt, acknowledgement: bytes | None = None) -> VerifiedReceipt:
    document = ack(given) if acknowledgement is None else acknowledgement
    return verify_acknowledgement(receipt_registry(), of, Acknowledged(given.canonical(), document))


def _rule(of: Claim, given: Receipt, acknowledgement: bytes | None = None) -> str:
    with pytest.raises(ContractError) as caught:
        _ = _verify(of, given, acknowledgement)
    return caught.value.rule


@pytest.mark.req("DLV-07", "DLV-08", "DLV-19")
def test_a_matching_receipt_is_verified() -> None:
    """The result is the reference, the candidate that the digest covers, and the digest, for the database."""
    given = receipt()
    found = _verify(claim(), given)
    assert found == VerifiedReceipt(
        ref="billing-1",
        candidate=given.candidate_bytes(),
        digest=bytes.fromhex(given.digest()),
        receipt_type="ConsumerReceipt",
        schema_version="1",
        algorithm="jcs-sha256-v1",
    )


@pytest.mark.req("DLV-07", "DLV-11", "SET-11")
def test_a_receipt_of_the_frozen_projection_is_verified() -> None:
    """The receipt of exactly the target's name and version completes the delivery."""
    assert _verify(claim(SEARCH), search_receipt()).receipt_type == "SearchReceipt"


@pytest.mark.req("DLV-07")
def test_the_spelling_of_the_answer_does_not_matter() -> None:
    """A consumer in another language may print its JSON in its own way; the stored candidate is canonical anyway."""
    given = receipt()
    loose = Acknowledged(
        json.dumps(given.to_json(), indent=2).encode(), json.dumps(json.loads(ack(given)), indent=2).encode()
    )
    assert verify_acknowledgement(receipt_registry(), claim(), loose) == _verify(claim(), given)


@pytest.mark.req("DLV-07", "DLV-11", "DLV-19", "NEG-08", "SET-35")
@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"destination": "audit"}, "receipt_destination"),
        ({"consumer_name": "auditor"}, "receipt_consumer"),
        ({"event_id": str(OTHER_EVENT_ID)}, "receipt_event"),
        ({"event_type": "order.placed@2"}, "receipt_event_type"),
        ({"event_schema_version": "1.0"}, "receipt_event_schema"),
        ({"event_envelope_sha256": "0" * 64}, "receipt_event_digest"),
    ],
)
def test_a_receipt_for_something_else_is_refused(changes: dict[str, str], rule: str) -> None:
    """Another consumer, destination, event or content: each is refused by its own rule, though its digest is right."""
    assert _rule(claim(), receipt(**changes)) == rule


@pytest.mark.req("DLV-11", "SET-11", "SET-32", "NEG-08")
@pytest.mark.parametrize(
    ("name", "version"), [("search", "4"), ("search", "2"), ("search_shadow", "3")], ids=["shadow", "old", "other"]
)
def test_a_receipt_of_another_projection_is_refused(name: str, version: str) -> None:
    """A shadow, an old version or another projection never completes the delivery, however consistent it is."""
    given = search_receipt(projection_name=name, projection_version=version)
    assert _rule(claim(SEARCH), given) == "receipt_projection"


@pytest.mark.req("SET-11", "SET-20")
def test_the_receipts_own_coordinates_are_never_the_expected_ones() -> None:
    """One and the same receipt is accepted or refused by what the member froze, and by nothing else."""
    given = search_receipt(projection_version="4")
    newer = member("search", "search_projector", projection=("search", "4"))
    assert _verify(claim(newer), given).ref == "search-1"
    assert _rule(claim(SEARCH), given) == "receipt_projection"


@pytest.mark.req("DLV-11", "NEG-08", "SET-20")
def test_a_receipt_of_another_type_is_refused() -> None:
    """Neither a projection receipt for an ordinary member nor an ordinary one for a projection is even readable."""
    with pytest.raises(ContractError):
        _ = _verify(claim(), search_receipt(destination="billing", consumer_name="billing"))
    with pytest.raises(ContractError):
        _ = _verify(claim(SEARCH), receipt(destination="search", consumer_name="search_projector"))


@pytest.mark.req("DLV-07", "DLV-08", "NEG-08")
@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"destination": "audit"}, "ack_destination"),
        ({"consumerName": "auditor"}, "ack_consumer"),
        ({"eventId": str(OTHER_EVENT_ID)}, "ack_event"),
        ({"eventEnvelopeSha256": "0" * 64}, "ack_event_digest"),
        ({"eventEnvelopeDigestAlgorithmVersion": "jcs-sha512-v1"}, "not_in_enumeration"),
    ],
)
def test_an_acknowledgement_of_something_else_is_refused(changes: dict[str, str], rule: str) -> None:
    """A right receipt does not excuse an acknowledgement that speaks of something else."""
    given = receipt()
    assert _rule(claim(), given, encode(json.loads(ack(given)) | changes)) == rule


@pytest.mark.req("DLV-08", "DLV-11", "NEG-08")
def test_the_acknowledgement_must_name_the_receipt_beside_it() -> None:
    """Another reference, another digest or another branch in the acknowledgement is refused."""
    given = receipt()
    assert _rule(claim(), given, ack(receipt(consumer_receipt_ref="billing-2"))) == "ack_receipt"
    other: Any = json.loads(ack(given))
    other["appliedReceipt"]["consumerReceiptDigest"] = "0" * 64
    assert _rule(claim(), given, encode(other)) == "ack_receipt"
    branch = json.loads(ack(search_receipt()))["appliedReceipt"]
    assert _rule(claim(), given, encode(json.loads(ack(given)) | {"appliedReceipt": branch})) == "ack_branch"


@pytest.mark.req("DLV-06", "NEG-08")
@pytest.mark.parametrize("document", [b"", b"OK", b'"OK"', b"200", b"{}", b"[]", b"null", b"\xff"])
def test_a_free_string_or_a_bare_status_proves_nothing(document: bytes) -> None:
    """Neither in place of the receipt nor in place of the acknowledgement."""
    given = receipt()
    with pytest.raises(ContractError):
        _ = verify_acknowledgement(receipt_registry(), claim(), Acknowledged(document, ack(given)))
    with pytest.raises(ContractError):
        _ = verify_acknowledgement(receipt_registry(), claim(), Acknowledged(given.canonical(), document))


@pytest.mark.req("DLV-08", "DLV-19")
def test_a_receipt_with_a_borrowed_digest_is_refused() -> None:
    """The digest is recomputed from the body, so a self-reported one is worth nothing."""
    forged = receipt().to_json() | {"consumerReceiptDigest": receipt(destination="audit").digest()}
    with pytest.raises(DigestMismatch):
        _ = verify_acknowledgement(receipt_registry(), claim(), Acknowledged(encode(forged), ack(receipt())))


@pytest.mark.req("DLV-07", "F35", "NEG-08")
def test_a_receipt_for_the_same_id_with_other_content_is_refused() -> None:
    """A consumer that stored other content under this event id cannot acknowledge ours."""
    changed = claim(event=prepared({"order_id": "17", "count": 2}))
    assert _rule(changed, receipt()) == "receipt_event_digest"


@pytest.mark.req("SET-20", "AMB-38")
def test_a_member_that_expects_an_unknown_type_is_never_satisfied() -> None:
    """The registry of this release supplies nothing that the frozen member does not name."""
    of = claim()
    foreign = replace(of, member=replace(of.member, receipt_type="OtherReceipt"))
    with pytest.raises(UnknownContract):
        _ = _verify(foreign, receipt())
    newer = replace(of, member=replace(of.member, receipt_schema_version="2"))
    with pytest.raises(UnknownContract):
        _ = _verify(newer, receipt())
    torn = replace(claim(SEARCH), member=replace(claim(SEARCH).member, projection=None))
    assert _rule(torn, search_receipt()) == "member_branch"


@pytest.mark.req("DLV-19", "AMB-38")
def test_a_receipt_type_can_compare_its_own_business_identity() -> None:
    """A registered comparison sees the stored envelope, and its refusal is the delivery's refusal."""
    seen: list[str] = []

    def compare(given: Receipt, envelope: Envelope) -> None:
        seen.append(f"{given.consumer_name} {envelope.aggregate.id}")
        if envelope.payload["count"] != 1:
            raise ContractError("another count", rule="receipt_business_identity")

    registry = ReceiptRegistry()
    _ = registry.register(ConsumerReceipt, ack_kind="consumer_receipt", compare=compare)
    given = receipt()
    answer = Acknowledged(given.canonical(), ack(given))
    assert verify_acknowledgement(registry, claim(), answer).ref == "billing-1"
    assert seen == ["billing order-17"]
    other = prepared({"order_id": "17", "count": 2})
    of = replace(claim(), envelope=other.envelope)
    with pytest.raises(ContractError, match="another count"):
        _ = verify_acknowledgement(registry, of, answer)


def _both_verdicts(of: Claim, answer: Acknowledged) -> tuple[object, object]:
    registry = receipt_registry()
    verdicts: list[object] = []
    for verify in (verify_acknowledgement, verify_by_contract):
        try:
            verdicts.append(verify(registry, of, answer))
        except ContractError as error:
            verdicts.append(error.rule)
    return verdicts[0], verdicts[1]


REFERENCES = ("billing-1", "a b", 'say "x"', "Rö", "back\\slash", " x", "y ", "", "r" * 200, "r" * 201)


@pytest.mark.req("DLV-07", "DLV-08", "DLV-19")
@settings(max_examples=400)
@given(st.sampled_from(REFERENCES), st.data())
def test_recognising_a_receipt_and_reading_it_have_one_verdict(reference: str, data: st.DataObject) -> None:
    """Whatever stands in the answer, comparing bytes accepts what the contract accepts, with the same result."""
    document = receipt().to_json() | {"consumerReceiptRef": reference}
    named = json.loads(ack(receipt()))
    named["appliedReceipt"]["consumerReceiptRef"] = reference
    texts = (encode(document), encode(named))
    answer = Acknowledged(data.draw(damaged(texts[0])), data.draw(damaged(texts[1])))
    recognised, read = _both_verdicts(claim(), answer)
    assert recognised == read


@pytest.mark.req("DLV-07", "DLV-11", "DLV-19", "SET-11")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"destination": "audit"},
        {"consumer_name": "auditor"},
        {"event_type": "order.placed@2"},
        {"schema_version": "2"},
        {"receipt_type": "SearchReceipt"},
        {"consumer_name": "Billing"},
    ],
)
def test_another_member_has_one_verdict(changes: dict[str, str]) -> None:
    """The same answer against members that froze something else, one of them with a name that is none."""
    of = claim()
    other = replace(of, member=replace(of.member, **changes))
    given_receipt = receipt()
    recognised, read = _both_verdicts(other, Acknowledged(given_receipt.canonical(), ack(given_receipt)))
    assert isinstance(recognised, VerifiedReceipt) is (changes == {})
    assert isinstance(read, VerifiedReceipt) is (changes == {})


@pytest.mark.req("DLV-07", "AMB-38")
@given(st.sampled_from(["2026-02-29T01:30:00.000000Z", "2026-02-28T24:00:00.000000Z", "2026-02-28T01:30:00.000000Z"]))
@example("2026-02-28T01:30:00.0000000")
def test_the_time_of_a_receipt_must_exist(moment: str) -> None:
    """The one value that no digest covers is still judged by its contract's rule."""
    document = receipt().to_json() | {"committedAt": moment}
    recognised, read = _both_verdicts(claim(), Acknowledged(encode(document), ack(receipt())))
    assert recognised == read
