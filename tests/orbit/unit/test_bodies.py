"""Request bodies are read strictly, and what was sent is recognised by its exact text."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.wire.bodies import (
    AttemptConfirm,
    DeliveryRetry,
    RequestBody,
    SubscriptionChange,
    SubscriptionCreate,
    TaskResolve,
    TaskSubmit,
)
from orbit.wire.strict_body import read_request

SECRET = "s" * 43


def refusal(model: type[RequestBody], body: bytes | str | dict[str, Any]) -> OrbitError:
    """The error that reading this body ends in."""
    data = json.dumps(body) if isinstance(body, dict) else body
    with pytest.raises(OrbitError) as caught:
        read_request(model, data if isinstance(data, bytes) else data.encode())
    return caught.value


def pointers(error: OrbitError) -> list[str]:
    """Where a body was wrong."""
    assert error.code is ErrorCode.VALIDATION_FAILED
    return [one["pointer"] for one in cast("list[dict[str, str]]", error.extensions["errors"])]


def fingerprint(model: type[RequestBody], text: str) -> str:
    """The fingerprint of a body that is right."""
    return read_request(model, text.encode()).fingerprint


@pytest.mark.req("orbit:API-04", "orbit:T-N23")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"name":"a",}',
        b'{"name":"a"} {}',
        b"{'name':1}",
        b'{"name":NaN}',
        b'{"name":"\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"name":' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"name":' + b"[" * 30_000 + b"}",
    ],
)
def test_a_body_that_is_no_json_in_utf_8_is_malformed(body: bytes) -> None:
    """Broken JSON, broken UTF-8, NaN, a second value and bottomless nesting have one answer."""
    assert refusal(SubscriptionCreate, body).code is ErrorCode.MALFORMED_REQUEST


@pytest.mark.req("orbit:API-04", "orbit:T-N23")
@pytest.mark.parametrize("body", ["[]", '[{"name":"a","queue":"q"}]', "null", "1", '"text"', "true"])
def test_a_body_that_is_another_json_value_than_an_object_fails_validation(body: str) -> None:
    """It is JSON, but of the wrong type."""
    assert pointers(refusal(SubscriptionCreate, body)) == [""]


@pytest.mark.req("orbit:API-04", "orbit:T-N23")
def test_unknown_duplicate_and_missing_members_are_named_where_they_stand() -> None:
    """The answer points at each of them."""
    assert pointers(refusal(SubscriptionCreate, {"name": "a", "queue": "q", "no~such/one": 1})) == ["/no~0such~1one"]
    assert pointers(refusal(SubscriptionCreate, '{"name":"a","n\\u0061me":"b","queue":"q"}')) == ["/name"]
    assert pointers(refusal(SubscriptionCreate, {"name": "a"})) == ["/queue"]


@pytest.mark.req("orbit:API-04")
def test_a_body_of_very_many_unknown_members_is_answered_with_a_few() -> None:
    """What an attacker sends does not come back in full."""
    body = {f"m{number}": 1 for number in range(5000)}
    assert len(pointers(refusal(SubscriptionCreate, body))) == 20


@pytest.mark.req("orbit:API-04", "orbit:SUB-12", "orbit:RTY-10", "orbit:T-N05", "orbit:T-N16")
@pytest.mark.parametrize("number", ["-1", "1.5", '"0"', "true", "9223372036854775808", "1.0", "1e2", "9" * 5000, "[]"])
def test_a_number_that_is_no_integer_in_range_is_refused(number: str) -> None:
    """Fractions, exponents, strings, booleans and what bigint cannot hold are no sequence."""
    body = f'{{"name":"a","queue":"q","from_sequence":{number}}}'
    assert pointers(refusal(SubscriptionCreate, body)) == ["/from_sequence"]


@pytest.mark.req("orbit:SUB-12", "orbit:SUB-10", "orbit:T-N05")
def test_null_is_omitted_and_zero_is_zero() -> None:
    """`from_sequence` 0 is another wish than none at all."""
    none = read_request(SubscriptionCreate, b'{"name":"a","queue":"q","from_sequence":null,"types":null}')
    zero = read_request(SubscriptionCreate, b'{"name":"a","queue":"q","from_sequence":0}')
    assert none.body.from_sequence is None
    assert zero.body.from_sequence == 0
    assert none.fingerprint == fingerprint(SubscriptionCreate, '{"queue":"q","name":"a"}')
    assert none.fingerprint != zero.fingerprint
    assert pointers(refusal(SubscriptionCreate, '{"name":null,"queue":"q"}')) == ["/name"]


@pytest.mark.req("orbit:SUB-03", "orbit:T-P08")
@pytest.mark.parametrize("name", ["", "a" * 129, "-a", ".a", "a b", "a\n", "ä", "a/b", "a\u0000", "\ud800"])
def test_a_name_outside_the_rule_is_refused(name: str) -> None:
    """ASCII letters, digits, dot, underscore and hyphen, at most 128, the first a letter or digit; no newline."""
    assert pointers(refusal(SubscriptionCreate, {"name": name, "queue": "q"})) == ["/name"]


@pytest.mark.req("orbit:SUB-13", "orbit:T-N07")
@pytest.mark.parametrize(
    "types",
    [
        ["task.failed", "task.failed"],
        ["task.requeued"],
        ["task.created"],
        ["task.unknown"],
        [1],
        [None],
        "task.failed",
        {"task.failed": True},
    ],
)
def test_types_outside_the_four_or_twice_are_refused(types: Any) -> None:  # noqa: ANN401 - any JSON
    """Only the result types, each once."""
    found = pointers(refusal(SubscriptionCreate, {"name": "a", "queue": "q", "types": types}))
    assert all(pointer.startswith("/types") for pointer in found)


@pytest.mark.req("orbit:RTY-02", "orbit:RTY-10", "orbit:T-N16")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("expected_revision", None),
        ("expected_revision", 0),
        ("expected_revision", True),
        ("reason", None),
        ("reason", ""),
        ("reason", " \t\n"),
        ("reason", "r" * 1001),
        ("reason", "a\0b"),
        ("additional_attempts", None),
        ("additional_attempts", 0),
        ("additional_attempts", 101),
        ("additional_attempts", 1.5),
        ("additional_attempts", True),
        ("additional_attempts", "5"),
    ],
)
def test_a_retry_needs_revision_reason_and_attempts(member: str, value: Any) -> None:  # noqa: ANN401 - any JSON
    """All three are mandatory, and none is converted."""
    body = {"expected_revision": 1, "reason": "fixed", "additional_attempts": 5, member: value}
    assert pointers(refusal(DeliveryRetry, body)) == [f"/{member}"]


@pytest.mark.req("orbit:RTY-10", "orbit:PAU-07")
def test_the_reason_of_a_retry_is_counted_after_trimming_and_that_of_a_pause_may_be_empty() -> None:
    """1 to 1000 characters for a retry, 0 to 1000 for a pause."""
    retry = {"expected_revision": 1, "reason": f"  {'r' * 1000}\n", "additional_attempts": 5}
    assert read_request(DeliveryRetry, json.dumps(retry).encode()).body.reason == "r" * 1000
    assert read_request(SubscriptionChange, b'{"expected_revision":1,"reason":""}').body.reason == ""
    assert pointers(refusal(SubscriptionChange, {"expected_revision": 1, "reason": "r" * 1001})) == ["/reason"]


@pytest.mark.req("orbit:SRC-19", "orbit:SRC-20", "orbit:T-P05")
@pytest.mark.parametrize(
    "result", ["1.00", "-0", "1e5", '"\\u0000\\ud800"', "9" * 10_000, "null", '{ "a" : [ 1 ] }', "[" * 256 + "]" * 256]
)
def test_a_result_is_the_text_that_was_sent(result: str) -> None:
    """No number, escape or space is changed; white space around it is not part of it."""
    body = f'{{"lease_secret":"{SECRET}","result" : {result} ,"outcome":"succeeded"}}'
    assert read_request(AttemptConfirm, body.encode()).body.result == result


@pytest.mark.req("orbit:SRC-20", "orbit:T-N18")
def test_a_result_has_at_most_one_mebibyte_and_256_levels() -> None:
    """One byte or one level more is refused; a task input has the same limits."""
    largest, deepest = f'"{"x" * (1_048_576 - 2)}"', "[" * 256 + "]" * 256
    confirm = f'{{"lease_secret":"{SECRET}","outcome":"succeeded","result":%s}}'
    submit = '{"queue":"q","input":%s}'
    for model, form in ((AttemptConfirm, confirm), (TaskSubmit, submit)):
        for given in (largest, deepest):
            assert read_request(model, (form % given).encode())
        assert refusal(model, form % f'"{largest[1:-1]}x"').code is ErrorCode.RESULT_TOO_LARGE
        assert refusal(model, form % f"[{deepest}]").code is ErrorCode.MALFORMED_REQUEST
        assert refusal(model, form % "NaN").code is ErrorCode.MALFORMED_REQUEST
        assert refusal(model, form % "1 2").code is ErrorCode.MALFORMED_REQUEST


@pytest.mark.req("orbit:TSK-18")
def test_a_result_of_null_is_another_wish_than_no_result() -> None:
    """Resolving with null clears the result, without the member it stays."""
    body = '{"expected_revision":1,"outcome":"failed","reason":"r"%s}'
    given = read_request(TaskResolve, (body % ',"result":null').encode())
    absent = read_request(TaskResolve, (body % "").encode())
    assert (given.body.result, "result" in given.body.model_fields_set) == ("null", True)
    assert (absent.body.result, "result" in absent.body.model_fields_set) == (None, False)
    assert given.fingerprint != absent.fingerprint


@pytest.mark.req("orbit:IDM-10", "orbit:T-N25")
def test_a_fingerprint_knows_the_digits_of_an_input_and_not_the_order_of_members() -> None:
    """Two inputs that differ in the last of 30 digits, or in how 1 is written, are two requests."""
    first = fingerprint(TaskSubmit, '{"queue":"q","input":{"n":123456789012345678901234567890}}')
    assert first != fingerprint(TaskSubmit, '{"queue":"q","input":{"n":123456789012345678901234567891}}')
    assert first == fingerprint(TaskSubmit, '{ "input": {"n":123456789012345678901234567890}, "queue":"q" }')
    assert first != fingerprint(
        TaskSubmit, '{"queue":"q","max_attempts":3,"input":{"n":123456789012345678901234567890}}'
    )
    assert fingerprint(TaskSubmit, '{"queue":"q","input":1.0}') != fingerprint(TaskSubmit, '{"queue":"q","input":1.00}')


@pytest.mark.req("orbit:AUT-14", "orbit:T-P09")
def test_a_body_shows_nothing_of_what_it_holds() -> None:
    """Neither its repr nor the error that refuses it quotes a value."""
    given = read_request(AttemptConfirm, f'{{"lease_secret":"{SECRET}","outcome":"failed","result":"hush"}}'.encode())
    error = refusal(AttemptConfirm, {"lease_secret": "hush" * 20, "outcome": "hush", "effect": "hush", "result": 1})
    assert SECRET not in repr(given)
    assert "hush" not in repr(given) + repr(error) + str(error) + repr(error.extensions)
