"""Results keep their exact text, and what is no single JSON value gets in nowhere (SRC-15, SRC-18 to SRC-20)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.exact_json import raw_members
from orbit.model.limits import RESULT_BYTES_MAX
from orbit.tasks.exact_text import checked_text
from tests.kit.database import TestDatabase
from tests.kit.orbit.platform import Platform, assert_tasks_whole, found

DIGITS = st.integers(1, 10_000).flatmap(
    lambda length: st.integers(1, 9).map(
        lambda first: str(first) + "0123456789"[: max(0, length - 1)] * (length // 10 + 1)
    )
)
NUMBERS = st.one_of(
    st.sampled_from(["-0", "0", "-0.0", "1.0", "1.00", "1e400", "-1E-400", "0.10", "12345678901234567890", "1e+05"]),
    DIGITS,
    DIGITS.map(lambda digits: "-" + digits),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
STRINGS = st.one_of(
    st.sampled_from(
        ['"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\\/"', '"\\u00e9"', '"é"', '"\\"}],"', '"\\\\"', '""']
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(
        lambda text: json.dumps(text, ensure_ascii=False)
    ),
    st.text(max_size=20).map(json.dumps),
)
SPACE = st.sampled_from(["", " ", "\n\t", "\r\n"])


def _array(items: list[str], space: str) -> str:
    return "[" + space + ("," + space).join(items) + "]"


def _object(items: list[tuple[str, str]], space: str) -> str:
    return "{" + ",".join(f"{space}{name}{space}:{value}{space}" for name, value in items) + "}"


VALUES = st.recursive(
    st.one_of(NUMBERS, STRINGS, st.sampled_from(["null", "true", "false"])),
    lambda inner: st.one_of(
        st.builds(_array, st.lists(inner, max_size=4), SPACE),
        st.builds(_object, st.lists(st.tuples(STRINGS, inner), max_size=4), SPACE),
    ),
    max_leaves=12,
)
NOT_ONE_VALUE = [
    "",
    " ",
    "NaN",
    "Infinity",
    "-Infinity",
    "1 2",
    "{} {}",
    '1,"extra":2',
    '1},"extra":{"a":1',
    "[1",
    "{'a':1}",
    "01",
    "1.",
    '"\n"',
    "tru",
]


@pytest.mark.req("orbit:SRC-15", "orbit:SRC-18", "orbit:SRC-19", "orbit:T-P05")
def test_any_result_is_stored_as_it_was_sent(orbit_database: TestDatabase) -> None:
    """What the worker sent is what journal, task and a repetition hold, byte for byte; the server's check agrees."""
    connection = orbit_database.connect(autocommit=True)
    platform = Platform(connection, found(connection))

    @given(text=VALUES)
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def stored(text: str) -> None:
        assert checked_text(f" {text}\n", ErrorCode.RESULT_TOO_LARGE) == text
        held = platform.start()
        receipt = platform.confirm(held, result=text)
        snapshot = platform.value("select snapshot_json from orbit.result_events where task_id = %s", held.task_id)
        assert raw_members(snapshot)["result"] == text
        body = platform.value("select orbit.task_get_v1(%s, %s)", platform.place.token_sha256, held.task_id)
        assert raw_members(body)["result"] == text
        again = platform.confirm(held, result=text)
        assert (again.text, again.replayed) == (receipt.text, True)

    stored()
    assert_tasks_whole(connection)


@pytest.mark.req("orbit:SRC-19", "orbit:TSK-09")
def test_an_input_comes_back_as_it_was_sent(orbit_database: TestDatabase) -> None:
    """The worker gets the exact text of the input."""
    connection = orbit_database.connect(autocommit=True)
    platform = Platform(connection, found(connection))
    text = '{"n":1.00,"big":123456789012345678901234567890,"s":"\\u0000","a":[ ]}'
    platform.submit(input_json=text)
    ((given_text,),) = platform.rows(
        "select input_json from orbit.task_claim_v1(%s, 'billing', 'w', 1, %s, null)",
        platform.place.token_sha256,
        [bytes(32)],
    )
    assert given_text == text


@pytest.mark.req("orbit:SRC-20", "orbit:T-N18")
def test_what_is_not_one_json_value_writes_nothing(orbit_database: TestDatabase) -> None:
    """The database itself refuses it as input, as result and as resolution, before its first lock."""
    connection = orbit_database.connect(autocommit=True)
    platform = Platform(connection, found(connection))
    held, review = platform.start(), platform.start()
    platform.confirm(review, "failed", effect="unknown")
    counts = "select (select count(*) from orbit.events), (select count(*) from orbit.audit_log)"
    before = connection.execute(counts).fetchone()
    for text in NOT_ONE_VALUE:
        calls: list[Any] = [
            lambda text=text: platform.submit(input_json=text),
            lambda text=text: platform.confirm(held, result=text),
            lambda text=text: platform.confirm(held, "failed", retryable=True, result=text),
            lambda text=text: platform.resolve(review.task_id, 3, given=True, result=text),
        ]
        for call in calls:
            with pytest.raises(psycopg.Error) as refused:
                call()
            assert (refused.value.sqlstate, text) == ("22P02", text)
        with pytest.raises(OrbitError) as malformed:
            checked_text(text, ErrorCode.RESULT_TOO_LARGE)
        assert malformed.value.code is ErrorCode.MALFORMED_REQUEST
    assert connection.execute(counts).fetchone() == before
    assert platform.task(held.task_id)["state"] == "running"


@pytest.mark.req("orbit:SRC-20", "orbit:T-N18")
def test_a_result_may_have_one_mebibyte_and_256_levels(orbit_database: TestDatabase) -> None:
    """Exactly the limits pass the check and the database; one more is refused with its code and writes nothing."""
    connection = orbit_database.connect(autocommit=True)
    platform = Platform(connection, found(connection))
    largest = '"' + "é" * ((RESULT_BYTES_MAX - 2) // 2) + '"'
    deepest = "[" * 256 + "]" * 256
    for text in (largest, deepest):
        assert checked_text(text, ErrorCode.RESULT_TOO_LARGE) == text
        assert platform.finish(result=text).sequence is not None
        assert platform.journal()[-1][4].endswith(f'"result":{text}}}')
    held = platform.start()
    for text, code in (
        (largest[:-1] + 'x"', ErrorCode.RESULT_TOO_LARGE),
        (f"[{deepest}]", ErrorCode.MALFORMED_REQUEST),
        ("[" * 100_000, ErrorCode.MALFORMED_REQUEST),
        ('"\ud800"', ErrorCode.MALFORMED_REQUEST),
    ):
        with pytest.raises(OrbitError) as refused:
            checked_text(text, ErrorCode.RESULT_TOO_LARGE)
        assert refused.value.code is code
    with pytest.raises(psycopg.Error) as too_large:
        platform.confirm(held, result=largest[:-1] + 'x"')
    assert too_large.value.sqlstate == "OB026"
    assert platform.task(held.task_id)["state"] == "running"


@pytest.mark.req("orbit:TSK-19", "orbit:IDM-10", "orbit:T-N25")
def test_numbers_that_are_equal_are_not_the_same_request(orbit_database: TestDatabase) -> None:
    """`1.0` after `1.00` is a conflict; a key used for another request's digest is one too; the same is a replay."""
    connection = orbit_database.connect(autocommit=True)
    platform = Platform(connection, found(connection))
    held = platform.start()
    platform.confirm(held, result="1.00")
    with pytest.raises(psycopg.Error) as refused:
        platform.confirm(held, result="1.0")
    assert refused.value.sqlstate == "OB011"
    number = "1234567890" * 3
    first = platform.submit(input_json=number, key="k", request="1" * 64)
    assert platform.submit(input_json=number, key="k", request="1" * 64) == (201, first[1], True, None)
    with pytest.raises(psycopg.Error) as refused:
        platform.submit(input_json=number[:-1] + "1", key="k", request="2" * 64)
    assert refused.value.sqlstate == "OB015"
    assert platform.value("select count(*) from orbit.tasks") == 2


@pytest.mark.req("orbit:TSK-19")
def test_the_fingerprint_is_the_one_of_the_specification(orbit_database: TestDatabase) -> None:
    """SHA-256 over each part behind its length in four bytes: computed here by hand."""
    parts = [b"failed", b"none", b"true", '{"é":1.0}'.encode()]
    expected = hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).hexdigest()
    connection = orbit_database.connect(autocommit=True)
    row = connection.execute("select orbit.attempt_fingerprint('failed', 'none', true, %s)", ('{"é":1.0}',)).fetchone()
    assert row == (expected,)
