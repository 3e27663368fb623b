"""Receipts, their registry, and the acknowledgement that names one of them."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from seapost.contracts.ack import decode_ack
from seapost.contracts.canonical import encode
from seapost.contracts.content_addressed import ContentAddressed, Quad
from seapost.contracts.digest import sha256_hex
from seapost.contracts.examination import JSONValue
from seapost.contracts.fields import Algorithm, Digest, Identifier, Label
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS, kernel_receipts
from seapost.contracts.receipts import ConsumerReceipt, Receipt
from seapost.model.errors import CanonicalError, ContractError, DigestMismatch, UnknownContract
from tests.kit.contracts import SearchReceipt, ack, receipt, receipt_registry, search_receipt

MOMENT = "2026-03-29T01:30:00.000000Z"


class StampReceipt(Receipt, prefix="stampReceipt", schema_version="2"):
    """A receipt type of its own, in a second schema version."""

    stamp_receipt_ref: Identifier
    stamp_receipt_schema_version: Literal["2"]
    stamp_receipt_digest_algorithm_version: Algorithm
    stamp_receipt_digest: Digest
    place: Label


@pytest.mark.req("AMB-38", "REF-02", "RCP-38")
def test_a_receipts_digest_leaves_out_reference_and_commit_time() -> None:
    """Two commits of one fact have one digest; any other field changes it."""
    first = receipt()
    again = receipt(consumer_receipt_ref="billing-2", committed_at="2027-01-01T00:00:00.000000Z")
    assert again.digest() == first.digest() == first.consumer_receipt_digest
    assert receipt(destination="audit").digest() != first.digest()
    covered = set(first.to_json()) - set(first.candidate())
    assert covered == {"consumerReceiptRef", "committedAt", "consumerReceiptDigest"}
    assert first.digest() == sha256_hex(first.candidate_bytes())
    assert first.quad() == Quad("billing-1", "1", "jcs-sha256-v1", first.digest())


@pytest.mark.req("AMB-38")
def test_a_receipt_comes_back_whole_from_its_candidate() -> None:
    """Candidate, reference and commit time are all a database must keep."""
    first = receipt()
    again = ConsumerReceipt.from_candidate(
        first.candidate_bytes(),
        consumer_receipt_ref=first.consumer_receipt_ref,
        committed_at=first.committed_at,
    )
    assert again == first
    again.verify()


@pytest.mark.req("AMB-38")
@pytest.mark.parametrize(
    ("added", "outside", "rule"),
    [
        ({}, {"consumer_receipt_ref": "r"}, "missing_field"),
        ({}, {"consumer_receipt_ref": "r", "committed_at": "now"}, "pattern"),
        ({}, {"consumer_receipt_ref": "r", "outcome": "applied"}, "candidate"),
        ({"committedAt": MOMENT}, {"consumer_receipt_ref": "r"}, "candidate"),
        ({"more": "1"}, {"consumer_receipt_ref": "r", "committed_at": MOMENT}, "unknown_field"),
    ],
)
def test_a_candidate_takes_only_the_fields_outside_it(
    added: dict[str, str], outside: dict[str, str], rule: str
) -> None:
    """A field on the wrong side of the digest, a missing or an unknown one is refused."""
    with pytest.raises(ContractError) as caught:
        _ = ConsumerReceipt.from_candidate(encode(receipt().candidate() | added), **outside)
    assert caught.value.rule == rule
    with pytest.raises(ContractError) as caught:
        _ = ConsumerReceipt.from_candidate(b"[]", **outside)
    assert caught.value.rule == "wrong_type"


@pytest.mark.req("DLV-19")
def test_a_forged_receipt_does_not_decode() -> None:
    """Decoding recomputes the digest from the content, so a changed field is found before anything is compared."""
    forged = receipt().to_json() | {"destination": "audit"}
    with pytest.raises(DigestMismatch) as caught:
        _ = ConsumerReceipt.decode(forged)
    assert caught.value.pointer == "/consumerReceiptDigest"
    with pytest.raises(DigestMismatch):
        receipt().model_copy(update={"destination": "audit"}).verify()
    with pytest.raises(CanonicalError):
        _ = ConsumerReceipt.decode(b'"ok"\x00')
    with pytest.raises(ContractError):
        _ = ConsumerReceipt.decode(b'"ok"')


@pytest.mark.req("REF-03")
def test_a_content_addressed_class_must_declare_its_quad() -> None:
    """A class without the four fields its prefix promises is refused when it is made."""
    with pytest.raises(TypeError, match="halfDigest"):
        _ = type("Half", (ContentAddressed,), {"__module__": __name__}, prefix="half")


@pytest.mark.req("AMB-38")
def test_receipt_types_are_registered_before_the_start_and_never_after() -> None:
    """A closed registry takes nothing new, while registering the same type again changes nothing."""
    registry = kernel_receipts()
    entry = registry.register(StampReceipt, ack_kind="stamp")
    assert (entry.name, entry.schema_version, entry.prefix, entry.is_projection) == (
        "StampReceipt",
        "2",
        "stampReceipt",
        False,
    )
    _ = registry.close()
    assert registry.register(StampReceipt, ack_kind="stamp") == entry
    with pytest.raises(ContractError) as caught:
        _ = registry.register(SearchReceipt, ack_kind="search")
    assert caught.value.rule == "registry_closed"
    with pytest.raises(ContractError):
        _ = DEFAULT_RECEIPTS.register(SearchReceipt, ack_kind="search")


@pytest.mark.req("AMB-38")
def test_a_name_or_kind_means_one_receipt_type() -> None:
    """A second type of one kind is refused; an exact name and version is found, a near one is not."""
    registry = receipt_registry()
    with pytest.raises(ContractError) as caught:
        _ = registry.register(StampReceipt, ack_kind="search")
    assert caught.value.rule == "registered_twice"
    assert registry.get("SearchReceipt", "1").is_projection
    assert not registry.get("ConsumerReceipt", "1").is_projection
    for pair in (("ConsumerReceipt", "2"), ("consumerReceipt", "1"), ("ConsumerReceipt", "1.0")):
        with pytest.raises(UnknownContract):
            _ = registry.get(*pair)
    with pytest.raises(UnknownContract):
        _ = kernel_receipts().of(search_receipt())


@pytest.mark.req("DLV-06")
def test_an_acknowledgement_names_one_receipt_completely() -> None:
    """It decodes to the branch and the complete quad of the receipt it was built from."""
    found = decode_ack(receipt_registry(), ack(search_receipt()))
    assert found.receipt_type.name == "SearchReceipt"
    assert found.applied_receipt == search_receipt().quad()
    assert (found.destination, found.consumer_name) == ("search", "search_projector")
    assert found.event_envelope_sha256 == search_receipt().event_envelope_sha256


def _ack(**changes: Any) -> dict[str, Any]:
    document = json.loads(ack(receipt()))
    branch = document["appliedReceipt"] | changes.pop("appliedReceipt", {})
    branch = {name: value for name, value in branch.items() if value is not ...}
    return {**document, "appliedReceipt": branch, **changes}


@pytest.mark.req("DLV-06", "NEG-08")
@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (b'"received"', ""),
        (b"200", ""),
        (b"{}", "/destination"),
        (b"OK", ""),
        (_ack(more=1), "/more"),
        (_ack() | {"appliedReceipt": "billing-1"}, "/appliedReceipt"),
        (_ack(appliedReceipt={"kind": "unheard"}), "/appliedReceipt"),
        (_ack(appliedReceipt={"kind": ...}), "/appliedReceipt"),
        (_ack(appliedReceipt={"searchReceiptRef": "x"}), "/appliedReceipt/searchReceiptRef"),
        (_ack(appliedReceipt={"kind": "search"}), "/appliedReceipt/searchReceiptRef"),
        (_ack(appliedReceipt={"consumerReceiptDigest": ...}), "/appliedReceipt/consumerReceiptDigest"),
        (
            _ack(appliedReceipt={"consumerReceiptDigestAlgorithmVersion": ...}),
            "/appliedReceipt/consumerReceiptDigestAlgorithmVersion",
        ),
        (
            _ack(appliedReceipt={"consumerReceiptSchemaVersion": "2"}),
            "/appliedReceipt/consumerReceiptSchemaVersion",
        ),
        (_ack(eventEnvelopeDigestAlgorithmVersion="sha256"), "/eventEnvelopeDigestAlgorithmVersion"),
        (_ack(eventEnvelopeSha256="A" * 64), "/eventEnvelopeSha256"),
    ],
)
def test_anything_else_is_no_acknowledgement(document: bytes | dict[str, JSONValue], pointer: str) -> None:
    """A free string, a bare status, a mixed or unknown branch and an incomplete quad are refused at their place."""
    with pytest.raises(ContractError) as caught:
        _ = decode_ack(receipt_registry(), document)
    assert caught.value.pointer == pointer


@pytest.mark.req("DLV-06", "AMB-38")
def test_the_union_is_closed_over_the_registered_kinds() -> None:
    """An acknowledgement of a type that this application did not register is refused."""
    with pytest.raises(ContractError):
        _ = decode_ack(DEFAULT_RECEIPTS, ack(search_receipt()))
    assert decode_ack(DEFAULT_RECEIPTS, ack(receipt())).receipt_type.ack_kind == "consumer_receipt"
