"""`delivery_set_register_v1`: insert or compare, and every rejection of SET-14 in the database itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit import builders
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED, Document, canonical, definition_document, member
from tests.kit.kernel import Kernel, refused

Change = Callable[[Document], object]

DOCUMENT_CASES: dict[str, tuple[Change, str]] = {
    "unknown field": (lambda d: d.update(extra=1), "a field is unknown"),
    "bare digest": (lambda d: d.update(deliverySetDefinitionDigest="0" * 64), "a field is unknown"),
    "unknown schema": (lambda d: d.update(deliverySetDefinitionSchemaVersion="2"), "SchemaVersion must be"),
    "schema as number": (lambda d: d.update(deliverySetDefinitionSchemaVersion=1), "SchemaVersion must be"),
    "unknown algorithm": (
        lambda d: d.update(deliverySetDefinitionDigestAlgorithmVersion="sha256"),
        "deliverySetDefinitionDigestAlgorithmVersion must be",
    ),
    "no algorithm": (
        lambda d: d.pop("deliverySetDefinitionDigestAlgorithmVersion"),
        "deliverySetDefinitionDigestAlgorithmVersion must be",
    ),
    "no version": (lambda d: d.pop("deliverySetVersion"), "deliverySetVersion must be"),
    "empty version": (lambda d: d.update(deliverySetVersion=""), "deliverySetVersion must be"),
    "long version": (lambda d: d.update(deliverySetVersion="v" * 101), "deliverySetVersion must be"),
    "version with a control character": (
        lambda d: d.update(deliverySetVersion="1\u0007"),
        "deliverySetVersion must be",
    ),
    "no events": (lambda d: d.pop("applicableEvents"), "applicableEvents must be an array"),
    "members as object": (lambda d: d.update(members={}), "members must be an array"),
    "event count": (lambda d: d.update(applicableEventCount=3), "applicableEventCount must equal"),
    "event count as text": (lambda d: d.update(applicableEventCount="2"), "applicableEventCount must equal"),
    "member count": (lambda d: d.update(memberCount=2), "memberCount must equal"),
    "events unsorted": (lambda d: d["applicableEvents"].reverse(), "applicableEvents must be sorted"),
    "event twice": (
        lambda d: d.update(applicableEventCount=3, applicableEvents=[*d["applicableEvents"], d["applicableEvents"][1]]),
        "applicableEvents must be sorted",
    ),
    "event as text": (lambda d: d["applicableEvents"].__setitem__(0, PLACED), "each applicableEvents item"),
    "event with more": (lambda d: d["applicableEvents"][0].update(alias="x"), "each applicableEvents item"),
    "event with a wildcard": (lambda d: d["applicableEvents"][0].update(eventType="order.*"), "eventType must match"),
    "event version": (
        lambda d: d["applicableEvents"][1].update(eventSchemaVersion="latest"),
        "eventSchemaVersion must",
    ),
    "members unsorted": (lambda d: d["members"].reverse(), "members must be sorted"),
    "member twice": (
        lambda d: d.update(memberCount=4, members=[*d["members"], d["members"][2]]),
        "members must be sorted",
    ),
    "orphan member": (
        lambda d: d.update(applicableEventCount=1, applicableEvents=d["applicableEvents"][1:]),
        "every member must belong",
    ),
    "rebound destination": (
        lambda d: d["members"][2].update(destination=BILLING, consumerName="other_consumer"),
        "one destination of an event may map to only one consumer",
    ),
}

MEMBER_CASES: dict[str, tuple[Change, str]] = {
    "unknown field": (lambda m: m.update(extra=1), "missing, unknown or mistyped"),
    "missing field": (lambda m: m.pop("mandatory"), "missing, unknown or mistyped"),
    "mandatory as text": (lambda m: m.update(mandatory="true"), "missing, unknown or mistyped"),
    "null consumer": (lambda m: m.update(consumerName=None), "missing, unknown or mistyped"),
    "empty destination": (lambda m: m.update(destination=""), "missing, unknown or mistyped"),
    "destination": (lambda m: m.update(destination="Billing"), "destination and consumerName must match"),
    "consumer": (lambda m: m.update(consumerName="b" * 101), "destination and consumerName must match"),
    "receipt type": (lambda m: m.update(expectedReceiptType="any receipt"), "expectedReceiptType must match"),
    "receipt version": (lambda m: m.update(expectedReceiptSchemaVersion="*"), "expectedReceiptSchemaVersion must be"),
    "no target": (lambda m: m.update(projectionTarget=None), "projectionTarget must be"),
    "target as text": (lambda m: m.update(projectionTarget="not_applicable"), "projectionTarget must be"),
    "unknown branch": (lambda m: m.update(projectionTarget={"state": "optional"}), "projectionTarget must be"),
    "not_applicable with a name": (
        lambda m: m.update(projectionTarget={"state": "not_applicable", "projectionName": "p"}),
        "projectionTarget must be",
    ),
    "required without a version": (
        lambda m: m.update(projectionTarget={"state": "required", "projectionName": "p"}),
        "projectionTarget must be",
    ),
    "required with an empty name": (
        lambda m: m.update(projectionTarget={"state": "required", "projectionName": "", "projectionVersion": "1"}),
        "projectionTarget must be",
    ),
    "required with more": (
        lambda m: m.update(
            projectionTarget={"state": "required", "projectionName": "p", "projectionVersion": "1", "shadow": True}
        ),
        "projectionTarget must be",
    ),
}


def _usual(version: str = "9") -> Document:
    return definition_document(version, [member(PLACED, BILLING), member(SHIPPED, BILLING), member(SHIPPED, SEARCH)])


def _refused_as(kernel: Kernel, candidate: bytes, words: str) -> None:
    before = kernel.count("delivery_set_versions"), kernel.count("audit_records")
    with pytest.raises(Exception, match=words) as caught:
        kernel.register(candidate)
    assert getattr(caught.value, "sqlstate", None) == "SP005"
    assert (kernel.count("delivery_set_versions"), kernel.count("audit_records")) == before


@pytest.mark.req("SET-14", "SET-02", "SET-03", "SET-04", "SET-05", "SET-06", "SET-07")
@pytest.mark.parametrize("case", DOCUMENT_CASES)
def test_a_definition_that_breaks_a_rule_is_refused_by_name(shared_lean: Kernel, case: str) -> None:
    """Unknown parts, wrong counts, wrong order, duplicates, orphans and rebinding: each is refused, nothing is
    stored.
    """
    change, words = DOCUMENT_CASES[case]
    document = _usual()
    change(document)
    _refused_as(shared_lean, canonical(document), words)


@pytest.mark.req("SET-14", "SET-01")
@pytest.mark.parametrize("case", MEMBER_CASES)
def test_a_member_that_breaks_a_rule_is_refused_by_name(shared_lean: Kernel, case: str) -> None:
    """A member is closed and typed; its projection target is one of two exact branches."""
    change, words = MEMBER_CASES[case]
    document = _usual()
    change(document["members"][0])
    _refused_as(shared_lean, canonical(document), words)


@pytest.mark.req("SET-14", "SET-12")
@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (b"", "not JSON in UTF-8"),
        (b"\xff", "not JSON in UTF-8"),
        (b"[]", "must be an object"),
        (b'"1"', "must be an object"),
        (canonical(_usual()) + b" ", "not in canonical form"),
        (canonical(_usual()).replace(b'"memberCount":3', b'"memberCount":3.0'), "memberCount|canonical"),
        (canonical(_usual()).replace(b'"memberCount":3', b'"memberCount":2,"memberCount":3'), "not in canonical form"),
    ],
    ids=["empty", "no utf-8", "array", "text", "space", "float count", "duplicate name"],
)
def test_the_candidate_is_canonical_json(shared_lean: Kernel, candidate: bytes, words: str) -> None:
    """The digest covers exact bytes, so only the one canonical spelling is accepted."""
    _refused_as(shared_lean, candidate, words)


@pytest.mark.req("SET-17", "SET-12", "SET-13", "STO-06", "REF-14")
def test_registering_stores_every_line_once_and_records_who_did_it(kernel: Kernel) -> None:
    """The quad, the lines and the audit record come from the candidate; the same again changes nothing and returns
    the same.
    """
    document = definition_document(
        "2026-03",
        [
            member(PLACED, BILLING),
            member(
                SHIPPED,
                SEARCH,
                projectionTarget={"state": "required", "projectionName": "orders", "projectionVersion": "3"},
                mandatory=False,
            ),
        ],
        events=["order.lost@1"],
    )
    candidate = canonical(document)
    identity = kernel.register(candidate, release="shop 1.2", actor="ann")
    assert kernel.register(candidate, release="shop 1.3", actor="bob") == identity
    assert kernel.rows(
        "select delivery_set_version, delivery_set_definition_schema_version,"
        " delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest, status, activated_at,"
        " source_release from seapost.delivery_set_versions where delivery_set_version = '2026-03'"
    ) == [("2026-03", "1", "jcs-sha256-v1", builders.digest(candidate).hex(), "registered", None, "shop 1.2")]
    assert kernel.rows(
        "select event_type, destination, consumer_name, mandatory, expected_receipt_type,"
        " expected_receipt_schema_version, projection_target_state, projection_name, projection_version"
        " from seapost.delivery_set_members where delivery_set_version = '2026-03' order by 1, 2"
    ) == [
        (PLACED, BILLING, "billing_consumer", True, "ConsumerReceipt", "1", "not_applicable", None, None),
        (SHIPPED, SEARCH, "search_consumer", False, "ConsumerReceipt", "1", "required", "orders", "3"),
    ]
    assert kernel.rows(
        "select actor, action, subject_ref, request_digest from seapost.audit_records where subject_ref = '2026-03'"
    ) == [("ann", "delivery_set.register", "2026-03", builders.digest(candidate).hex())]


@pytest.mark.req("SET-14", "SET-17")
def test_a_version_never_means_two_definitions(kernel: Kernel) -> None:
    """The same version with another candidate is a conflict that shows both digests; the stored one stays."""
    other = builders.definition("1", {PLACED: [SEARCH]})
    with refused("SP004", builders.digest(builders.definition()).hex(), builders.digest(other).hex()):
        kernel.register(other)
    assert kernel.value("select candidate from seapost.delivery_set_versions") == builders.definition()


@pytest.mark.req("REF-14")
@pytest.mark.parametrize("actor", [None, "", "a" * 201])
def test_registering_needs_an_actor(shared_lean: Kernel, actor: str) -> None:
    """Nobody registers a definition without a name in the audit record."""
    with refused("SP013", "p_actor"):
        shared_lean.register(builders.definition("anonymous"), actor=actor)


@pytest.mark.req("SET-02", "SET-03", "AMB-15")
def test_order_is_by_code_point_and_not_by_locale(shared_lean: Kernel) -> None:
    """`a-z`, `a.b`, `a_b`, `ab` is the order of their bytes; a locale would sort them otherwise (AMB-15)."""
    names = ["a-z", "a.b", "a_b", "ab"]
    candidate = canonical(definition_document("by-byte", [member(name, BILLING) for name in reversed(names)]))
    with shared_lean.connection.transaction(force_rollback=True):
        shared_lean.register(candidate)
        assert shared_lean.count("delivery_set_versions") == 2
