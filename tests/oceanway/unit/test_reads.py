"""Owner reads: what a token must bind, who may ask what for, and what there is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oceanway.reads.call import SCOPE, bindings_of, encode_request
from oceanway.reads.errors import CallRefused, OwnerUnreadable, ReadRefused
from seapost.model.errors import InvalidSetting, Retry
from seapost.model.outcome import UNCOUNTED_CODES
from seapost.transport.token import TokenSigner
from tests.kit.oceanway.questions import (
    CALLER,
    INSPECT_SHIP,
    OWNER,
    PURPOSE,
    READ_SHIP,
    Draught,
    Harbour,
    ShipQuestion,
    answer_of,
    question,
)
from tests.kit.oceanway.reading import ISSUER, local_reader, new_serving, new_signer, signing_key

CHANGES: dict[str, Callable[[ShipQuestion], ShipQuestion]] = {
    "ship_ref": lambda one: one.model_copy(update={"ship_ref": "Ghost"}),
    "ship_digest": lambda one: one.model_copy(update={"ship_digest": "e" * 64}),
    "state_version": lambda one: one.model_copy(update={"state_version": 8}),
    "draught.metres": lambda one: one.model_copy(update={"draught": Draught(metres=10, mark="summer")}),
    "draught.mark": lambda one: one.model_copy(update={"draught": Draught(metres=9, mark="winter")}),
    "a flag": lambda one: one.model_copy(update={"flags": ("EE", "SE")}),
    "a flag less": lambda one: one.model_copy(update={"flags": ("EE",)}),
    "a flag more": lambda one: one.model_copy(update={"flags": ("EE", "FI", "SE")}),
    "no flag": lambda one: one.model_copy(update={"flags": ()}),
}


def body_of(asked: ShipQuestion, token: str, *, purpose: str = PURPOSE) -> bytes:
    """The body of a call about `asked` with a token of one's choice."""
    item = {"token": token, "arguments": asked.canonical().decode()}
    return json.dumps({"protocol": "oceanway.read.v1", "purpose": purpose, "items": [item]}).encode()


def minted(asked: ShipQuestion, signer: TokenSigner | None = None, **changes: object) -> str:
    """A token for exactly this question, but for the changes."""
    claims: dict[str, object] = {"audience": OWNER, "scope": SCOPE, "purpose": PURPOSE, "bindings": bindings_of(asked)}
    return (signer or new_signer(CALLER)).mint(**{**claims, **changes})  # pyright: ignore[reportArgumentType]


def refusal_of(body: bytes, name: str = "readShip") -> CallRefused:
    """How the harbour refuses a call; its function must not have been asked."""
    harbour = Harbour()
    with pytest.raises(CallRefused) as refused:
        _ = harbour.serving.answer(name, body)
    assert harbour.asked == []
    return refused.value


@pytest.mark.req("REF-11")
def test_a_batch_is_answered_in_its_order_and_the_owner_learns_who_asks() -> None:
    """Three questions in one call: three answers in order, with the caller's workload and the bindings of each."""
    harbour = Harbour()
    asked = [question(), question(ship_ref="Ghost"), question(ship_ref="Linda")]
    answers = local_reader(harbour.serving, workload=CALLER).call(READ_SHIP, asked)
    assert answers == [answer_of(one) for one in asked]
    [(caller, seen)] = harbour.asked
    assert seen == asked
    assert caller.workload == CALLER
    assert [one["/shipRef"] for one in caller.bindings] == ["Ahto", "Ghost", "Linda"]


def test_nothing_is_asked_for_no_arguments() -> None:
    """A batch of nothing makes no call."""
    harbour = Harbour()
    assert local_reader(harbour.serving, workload=CALLER).call(READ_SHIP, []) == []
    assert harbour.asked == []


@pytest.mark.req("REF-11")
def test_every_leaf_of_the_arguments_is_bound_by_its_pointer() -> None:
    """Nested fields and each element of a list are leaves of their own; what is empty is bound as empty."""
    assert bindings_of(question()) == {
        "/shipRef": "Ahto",
        "/shipDigest": "d" * 64,
        "/stateVersion": 7,
        "/draught/metres": 9,
        "/draught/mark": "summer",
        "/flags/0": "EE",
        "/flags/1": "FI",
    }
    assert bindings_of(question(flags=()))["/flags"] == "[]"


@pytest.mark.req("REF-11", "SEC-08", "NEG-11")
@pytest.mark.parametrize("change", CHANGES)
def test_a_token_for_other_arguments_is_refused_whichever_leaf_differs(change: str) -> None:
    """A call whose arguments differ from the token's bindings in any one leaf is forbidden."""
    refused = refusal_of(body_of(CHANGES[change](question()), minted(question())))
    assert (refused.status, refused.problem) == (403, "forbidden")


@pytest.mark.req("REF-11", "NEG-11")
@pytest.mark.parametrize("name", sorted(bindings_of(question())))
def test_a_token_that_leaves_one_argument_unbound_is_refused(name: str) -> None:
    """A missing binding is no wildcard."""
    bindings = {key: value for key, value in bindings_of(question()).items() if key != name}
    refused = refusal_of(body_of(question(), minted(question(), bindings=bindings)))
    assert refused.status == 403
    assert refused.reason == "The workload token does not bind exactly the arguments of this call"


@pytest.mark.req("NEG-18", "SEC-10")
@pytest.mark.parametrize("name", ["/basis", "/candidate", "/validationOperationId"])
def test_a_token_that_binds_more_than_the_arguments_is_refused(name: str) -> None:
    """A basis, a candidate or a validation operation in the token makes it a token of another call."""
    refused = refusal_of(body_of(question(), minted(question(), bindings={**bindings_of(question()), name: "x"})))
    assert refused.status == 403


@pytest.mark.req("SEC-08", "SEC-09", "NEG-11", "REF-11")
@pytest.mark.parametrize(
    ("changed", "value", "rule"),
    [
        ("audience", "gateway", "The workload token has another audience"),
        ("audience", "*", "The workload token has another audience"),
        ("scope", "oceanway", "The workload token has another scope"),
        ("scope", "seapost.receipt.read", "The workload token has another scope"),
        ("purpose", "inspection", "The workload token has another purpose"),
        ("purpose", "pilot", "The workload token has another purpose"),
    ],
)
def test_a_token_with_another_audience_scope_or_purpose_is_refused(changed: str, value: str, rule: str) -> None:
    """Audience, scope and purpose are exact; the refusal names the rule."""
    refused = refusal_of(body_of(question(), minted(question(), None, **{changed: value})))
    assert (refused.status, refused.reason) == (403, rule)


@pytest.mark.req("SEC-09", "SEC-11", "NEG-18")
@pytest.mark.parametrize("purpose", ["metering_fact_construction", "inspection", ""])
def test_a_purpose_that_the_owner_does_not_serve_does_not_exist(purpose: str) -> None:
    """A call that states an unknown purpose is refused, even with a token that states it as well."""
    token = minted(question(), purpose=purpose or PURPOSE)
    refused = refusal_of(body_of(question(), token, purpose=purpose))
    assert refused.status == (403 if purpose else 400)


@pytest.mark.req("SEC-09")
def test_one_operation_for_two_purposes_lets_each_caller_ask_for_its_own_only() -> None:
    """The same read, declared for two purposes: the callers of one are not the callers of the other."""
    harbour = Harbour()
    harbour.serving.register(INSPECT_SHIP, harbour.read)
    inspector = local_reader(harbour.serving, workload="work.inspector")
    assert inspector.call(INSPECT_SHIP, [question()]) == [answer_of(question())]
    with pytest.raises(ReadRefused, match="not one of this read's callers"):
        _ = inspector.call(READ_SHIP, [question()])


@pytest.mark.req("SEC-08", "NEG-11")
def test_a_workload_that_is_no_caller_of_the_read_is_refused() -> None:
    """An authentic token of another process of the installation is not enough."""
    refused = refusal_of(body_of(question(), minted(question(), new_signer("serve.billing"))))
    assert (refused.status, refused.reason) == (403, "The workload is not one of this read's callers")


@pytest.mark.req("REF-11")
def test_the_items_of_one_call_belong_to_one_workload() -> None:
    """Two callers of a read cannot ask in one call."""
    harbour = Harbour()
    serving = new_serving(OWNER)
    serving.register(replace(READ_SHIP, callers=frozenset({CALLER, "work.tug"})), harbour.read)
    items = [
        {"token": minted(question(), new_signer(one)), "arguments": question().canonical().decode()}
        for one in (CALLER, "work.tug")
    ]
    body = json.dumps({"protocol": "oceanway.read.v1", "purpose": PURPOSE, "items": items}).encode()
    with pytest.raises(CallRefused, match="belong to one workload"):
        _ = serving.answer("readShip", body)


@pytest.mark.req("REF-11", "NEG-11")
def test_an_expired_or_foreign_or_damaged_token_is_no_token() -> None:
    """Expired, signed with a key unknown here, of another issuer, or cut: 401, and never quoted."""
    foreign = TokenSigner(Ed25519PrivateKey.generate(), issuer=ISSUER, workload=CALLER)
    other_issuer = TokenSigner(signing_key(), issuer="elsewhere", workload=CALLER)
    whole = minted(question())
    for token, rule in (
        (minted(question(), now=1_000_000.0), "expired"),
        (minted(question(), foreign), "key unknown"),
        (minted(question(), other_issuer), "another issuer"),
        (whole[:-6], "signature"),
        ("nonsense", "malformed"),
    ):
        refused = refusal_of(body_of(question(), token))
        assert (refused.status, refused.problem) == (401, "unauthenticated")
        assert rule in refused.reason
        assert token not in refused.reason


@pytest.mark.req("SEC-08", "NEG-11")
@pytest.mark.parametrize("name", ["readShips", "listShips", "readLatestShip", "admin", "", "readShip/list"])
def test_there_is_no_list_no_latest_and_no_administrative_read(name: str) -> None:
    """Only registered operations exist; everything else is not found before anything of the call is read."""
    assert refusal_of(b"not even JSON", name).status == 404


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"protocol":"oceanway.read.v1","purpose":"pilotage","items":[]}', b'{"a":1,"a":2}'],
)
def test_a_body_that_is_no_call_is_refused(body: bytes) -> None:
    """The form is checked first: an empty batch, a missing field and a doubled name are no calls."""
    assert refusal_of(body).status == 400


def test_arguments_that_break_their_contract_are_refused() -> None:
    """An argument more than the operation has."""
    asked = json.dumps({**question().to_json(), "latest": True})
    item = {"token": minted(question()), "arguments": asked}
    body = json.dumps({"protocol": "oceanway.read.v1", "purpose": PURPOSE, "items": [item]}).encode()
    assert refusal_of(body).status == 400


def test_an_owner_registers_its_own_operations_only_and_each_once() -> None:
    """Another owner's read, a read that nobody may ask, and the same read twice are mistakes of the program."""
    harbour = Harbour()
    for operation in (replace(READ_SHIP, audience="gateway"), replace(READ_SHIP, callers=frozenset[str]()), READ_SHIP):
        with pytest.raises(InvalidSetting):
            harbour.serving.register(operation, harbour.read)
    assert harbour.serving.operations == (READ_SHIP,)


@pytest.mark.req("AMB-35")
def test_a_failing_owner_is_unreadable_which_a_delivery_retries_without_counting() -> None:
    """What the owner's function raises never reaches the caller; its error ends a delivery as `owner_unreadable`."""
    harbour = Harbour()
    harbour.failure = RuntimeError("password=hunter2")
    with pytest.raises(OwnerUnreadable) as unreadable:
        _ = local_reader(harbour.serving, workload=CALLER).call(READ_SHIP, [question()])
    assert isinstance(unreadable.value, Retry)
    assert unreadable.value.code == "owner_unreadable"
    assert unreadable.value.code in UNCOUNTED_CODES
    assert "hunter2" not in str(unreadable.value)


def test_an_owner_that_answers_too_few_questions_is_unreadable() -> None:
    """Answers are matched by place, so a missing one makes all of them worthless."""
    serving = new_serving(OWNER)
    serving.register(READ_SHIP, lambda _caller, arguments: [answer_of(one) for one in arguments[1:]])
    with pytest.raises(OwnerUnreadable):
        _ = local_reader(serving, workload=CALLER).call(READ_SHIP, [question(), question()])


def test_an_answer_that_breaks_its_contract_is_unreadable() -> None:
    """Bytes of an owner are believed only in the form of the contract."""
    serving = new_serving(OWNER)
    serving.register(READ_SHIP, lambda _caller, arguments: [b'{"answer":{"result":"maybe"}}' for _ in arguments])
    with pytest.raises(OwnerUnreadable, match="breaks the contract"):
        _ = local_reader(serving, workload=CALLER).call(READ_SHIP, [question()])


def test_a_token_of_a_whole_call_stands_in_no_representation() -> None:
    """Neither the signer nor the caller's error shows a token or a key."""
    body = encode_request(READ_SHIP, [question()], new_signer(CALLER))
    token = json.loads(body)["items"][0]["token"]
    refused = refusal_of(body_of(question(ship_ref="Ghost"), token))
    assert token not in repr(refused)
    assert token not in str(refused)
