"""The delivery set definition: closed, sorted, counted, digested; one vector for each way to break it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seapost.contracts.canonical import check_canonical, encode
from seapost.contracts.delivery_set import EVENTS_MAX, DeliverySetDefinition, derive
from seapost.contracts.digest import sha256_hex
from seapost.model.delivery_set import DefinitionQuad
from seapost.model.errors import ContractError, DeliverySetConflict, DigestMismatch, UnknownContract
from tests.kit.contracts import definition, member, receipt_registry

VERSION = "deliverySetVersion"
DIGEST = "deliverySetDefinitionDigest"

Document = dict[str, Any]


def _document() -> Document:
    """Three lines over two events, one of them a projection."""
    made = definition(
        member("billing", "billing"),
        member("search", "search_projector", projection=("search", "3")),
        member("audit", "auditor", event_type="order.cancelled@2.0", schema_version="2.0", mandatory=False),
    )
    return made.to_json()


def _sealed(document: Document) -> Document:
    """The document with the digest of its content, so that only the rule under test can refuse it."""
    covered = {name: value for name, value in document.items() if name != DIGEST}
    return {**covered, DIGEST: sha256_hex(encode(covered))}


def _decode(document: Document) -> DeliverySetDefinition:
    return DeliverySetDefinition.decode(document, receipts=receipt_registry())


def _refusal(document: Document) -> ContractError:
    with pytest.raises(ContractError) as caught:
        _ = _decode(document)
    return caught.value


@pytest.mark.req("SET-01", "SET-12", "REF-04")
def test_a_definition_is_read_and_written_without_a_change() -> None:
    """The decoded definition writes the same document and holds the digest of everything but the digest itself."""
    document = _document()
    made = _decode(document)
    assert made.to_json() == document
    covered = {name: value for name, value in document.items() if name != DIGEST}
    assert made.candidate() == covered
    assert made.digest() == sha256_hex(encode(covered)) == document[DIGEST]
    assert made.definition_quad() == DefinitionQuad("1", "1", "jcs-sha256-v1", document[DIGEST])
    assert DeliverySetDefinition.from_candidate(made.candidate_bytes()) == made


@pytest.mark.req("SET-12")
@pytest.mark.parametrize(
    "path",
    [
        (VERSION,),
        ("members", 0, "mandatory"),
        ("members", 1, "expectedReceiptSchemaVersion"),
        ("members", 2, "projectionTarget", "projectionVersion"),
        ("applicableEvents", 1, "eventSchemaVersion"),
    ],
)
def test_the_digest_covers_every_line_to_its_leaves(path: tuple[str | int, ...]) -> None:
    """Version, receipt contract, projection target and mandatory flag all change the digest."""
    document = _document()
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    value = place[path[-1]]
    place[path[-1]] = (not value) if isinstance(value, bool) else f"{value}0"
    assert _sealed(document)[DIGEST] != _document()[DIGEST]


@pytest.mark.req("SET-13")
@pytest.mark.parametrize("name", ["status", "activatedAt", "sourceRelease"])
def test_what_a_registry_adds_is_no_part_of_a_definition(name: str) -> None:
    """Status, activation time and source release are unknown fields here, so no digest can depend on them."""
    found = _refusal(_sealed({**_document(), name: "active"}))
    assert (found.rule, found.pointer) == ("unknown_field", f"/{name}")


def _change(path: str, value: object) -> Callable[[Document], Document]:
    """Set, or with `...` remove, the value at a JSON pointer."""

    def changed(document: Document) -> Document:
        place: Any = document
        *steps, last = path.strip("/").split("/")
        for step in steps:
            place = place[int(step) if isinstance(place, list) else step]
        key: Any = int(last) if isinstance(place, list) else last
        if value is ...:
            del place[key]
        else:
            place[key] = value
        return document

    return changed


def _swapped(name: str) -> Callable[[Document], Document]:
    def changed(document: Document) -> Document:
        document[name] = document[name][::-1]
        return document

    return changed


def _repeated(name: str, count: str) -> Callable[[Document], Document]:
    def changed(document: Document) -> Document:
        document[name].insert(0, deepcopy(document[name][0]))
        document[count] += 1
        return document

    return changed


def _rebound(document: Document) -> Document:
    line = deepcopy(document["members"][1])
    document["members"].insert(2, {**line, "consumerName": "billing_2"})
    document["memberCount"] += 1
    return document


REFUSED = [
    pytest.param(_change("/more", 1), "unknown_field", "/more", ContractError, id="1 unknown field"),
    pytest.param(_change("/members/0/more", 1), "unknown_field", "/members/0/more", ContractError, id="1 in a member"),
    pytest.param(
        _change("/members/0/projectionTarget/projectionName", "x"),
        "unknown_field",
        "/members/0/projectionTarget/projectionName",
        ContractError,
        id="1 mixed branches",
    ),
    pytest.param(
        _change("/deliverySetDefinitionSchemaVersion", "2"),
        "unknown_schema",
        "/deliverySetDefinitionSchemaVersion",
        UnknownContract,
        id="2 unknown schema",
    ),
    pytest.param(
        _change("/deliverySetDefinitionDigestAlgorithmVersion", "jcs-sha512-v1"),
        "unknown_algorithm",
        "/deliverySetDefinitionDigestAlgorithmVersion",
        UnknownContract,
        id="3 unknown algorithm",
    ),
    pytest.param(_swapped("members"), "not_sorted", "/members/1", ContractError, id="4 members not sorted"),
    pytest.param(
        _swapped("applicableEvents"), "not_sorted", "/applicableEvents/1", ContractError, id="4 events not sorted"
    ),
    pytest.param(_change("/memberCount", 4), "count", "/memberCount", ContractError, id="5 member count"),
    pytest.param(
        _change("/applicableEventCount", 1), "count", "/applicableEventCount", ContractError, id="5 event count"
    ),
    pytest.param(
        _change("/members/0/eventSchemaVersion", "2"),
        "orphan_member",
        "/members/0",
        ContractError,
        id="6 orphan member",
    ),
    pytest.param(
        _rebound, "rebound_destination", "/members/2/consumerName", ContractError, id="7 destination bound twice"
    ),
    pytest.param(
        _change("/members/2/projectionTarget", {"state": "not_applicable"}),
        "member_branch",
        "/members/2/projectionTarget",
        ContractError,
        id="8 projection receipt without target",
    ),
    pytest.param(
        _change(
            "/members/1/projectionTarget", {"state": "required", "projectionName": "search", "projectionVersion": "3"}
        ),
        "member_branch",
        "/members/1/projectionTarget",
        ContractError,
        id="8 target without projection receipt",
    ),
    pytest.param(
        _change("/deliverySetDefinitionDigestAlgorithmVersion", ...),
        "missing_field",
        "/deliverySetDefinitionDigestAlgorithmVersion",
        ContractError,
        id="9 bare digest",
    ),
    pytest.param(
        _change("/deliverySetDefinitionSchemaVersion", ...),
        "missing_field",
        "/deliverySetDefinitionSchemaVersion",
        ContractError,
        id="9 digest without schema",
    ),
    pytest.param(_repeated("members", "memberCount"), "duplicate", "/members/1", ContractError, id="duplicate member"),
    pytest.param(
        _repeated("applicableEvents", "applicableEventCount"),
        "duplicate",
        "/applicableEvents/1",
        ContractError,
        id="duplicate event",
    ),
    pytest.param(
        _change("/members/1/expectedReceiptType", "OtherReceipt"),
        "unknown_receipt_type",
        "/members/1/expectedReceiptType",
        UnknownContract,
        id="unknown receipt type",
    ),
    pytest.param(
        _change("/applicableEvents/0/eventSchemaVersion", 2.0),
        "wrong_type",
        "/applicableEvents/0/eventSchemaVersion",
        ContractError,
        id="version as a number",
    ),
    pytest.param(
        _change("/applicableEvents", [{"eventType": "a@1", "eventSchemaVersion": "1"}] * (EVENTS_MAX + 1)),
        "length",
        "/applicableEvents",
        ContractError,
        id="too many events",
    ),
    pytest.param(_change(f"/{VERSION}", ""), "length", f"/{VERSION}", ContractError, id="empty version"),
]


@pytest.mark.req("SET-02", "SET-03", "SET-04", "SET-05", "SET-06", "SET-07", "SET-14", "NEG-04", "AMB-14", "AMB-38")
@pytest.mark.parametrize(("change", "rule", "pointer", "kind"), REFUSED)
def test_each_broken_definition_is_refused(
    change: Callable[[Document], Document], rule: str, pointer: str, kind: type[ContractError]
) -> None:
    """Each rejection of SET-14 by its own rule and place, although the digest fits the broken content."""
    found = _refusal(_sealed(change(_document())))
    assert (found.rule, found.pointer) == (rule, pointer)
    assert type(found) is kind


@pytest.mark.req("SET-14", "NEG-04", "SET-17")
def test_one_version_never_means_two_contents() -> None:
    """The tenth rejection: the same version with another candidate or digest is a conflict; the same again is none."""
    first, same = definition(member()), definition(member())
    first.require_same(same)
    first.require_same(definition(member("search", "search"), version="2"))
    with pytest.raises(DeliverySetConflict):
        first.require_same(definition(member("search", "search")))
    forged = _document() | {DIGEST: "0" * 64}
    with pytest.raises(DigestMismatch) as caught:
        _ = _decode(forged)
    assert caught.value.pointer == f"/{DIGEST}"


@pytest.mark.req("AMB-15", "SET-02", "SET-03")
def test_order_is_by_code_point_not_by_length_or_number() -> None:
    """`10` sorts before `2`, `-` before `.` before `_`: the bytes decide, as in collation C."""
    made = derive(
        "1",
        [member(event_type=f"a{mark}b@{v}", schema_version=v) for mark in "_.-" for v in ("2", "10")],
        receipts=None,
    )
    keys = [event.key() for event in made.applicable_events]
    assert keys == sorted(keys, key=lambda key: [part.encode() for part in key])
    assert [key[0] for key in keys] == ["a-b@10", "a-b@2", "a.b@10", "a.b@2", "a_b@10", "a_b@2"]


@pytest.mark.req("SET-01", "SET-05", "SET-12")
@given(st.permutations(["audit", "billing", "ledger", "mail", "search"]), st.randoms(use_true_random=False))
def test_a_derived_definition_does_not_depend_on_the_order_of_its_routes(
    destinations: list[str], order: random.Random
) -> None:
    """Any order of the same lines gives the same canonical bytes, sorted and counted."""
    lines = [member(name, name) for name in destinations]
    made = derive("7", lines)
    order.shuffle(lines)
    assert derive("7", lines).canonical() == made.canonical()
    assert check_canonical(made.canonical()) == made.to_json()
    assert (made.member_count, made.applicable_event_count) == (5, 1)


@pytest.mark.req("SET-07")
def test_routes_that_bind_a_destination_twice_are_refused() -> None:
    """One event cannot go to two consumers of one destination; the error names the destination."""
    with pytest.raises(ContractError, match="billing") as caught:
        _ = derive("1", [member("billing", "one"), member("billing", "two")])
    assert caught.value.rule == "rebound_destination"


@pytest.mark.req("SET-08")
def test_the_mandatory_lines_of_a_pair_are_its_deliveries() -> None:
    """Exactly the mandatory members of the exact pair count; a member is found by pair and destination."""
    made = definition(member("billing", "b"), member("audit", "a", mandatory=False), member("search", "s"))
    assert [m.destination for m in made.mandatory_members("order.placed@1", "1")] == ["billing", "search"]
    assert made.mandatory_members("order.placed@1", "1.0") == []
    found = made.find("order.placed@1", "1", "audit")
    assert found is not None
    assert found.consumer_name == "a"
    assert made.find("order.placed", "1", "audit") is None


@pytest.mark.req("SET-01")
def test_an_event_may_be_applicable_and_go_nowhere() -> None:
    """A pair without members is legal: it may be appended and is complete at once."""
    made = derive("1", [], events=[("a@1", "1")])
    assert (made.applicable_event_count, made.member_count) == (1, 0)
    assert DeliverySetDefinition.decode(json.dumps(made.to_json(), indent=2)) == made


@pytest.mark.req("AMB-38")
def test_a_reader_that_only_looks_needs_no_receipt_types() -> None:
    """An operator's command can show a definition whose receipt types it does not know; a producer cannot use it."""
    document = _document()
    assert DeliverySetDefinition.decode(document, receipts=None).to_json() == document
    with pytest.raises(UnknownContract):
        _ = DeliverySetDefinition.decode(document)
