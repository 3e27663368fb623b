"""Server frames are valid against the published schema, and carry a snapshot's text as it was stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbit.model.codes import CODES, ErrorCode
from orbit.model.errors import OrbitError
from orbit.server.ws import writing
from orbit.server.ws.reading import FrameRefused, read_frame
from orbit.wire.frames import SERVER_FRAME
from orbit.wire.times import time_text
from tests.kit.orbit.frames import assert_valid

AT: Final = datetime(2026, 1, 5, 8, 30, 0, 1, tzinfo=UTC)
IDS: Final = st.text("abcXYZ019._-", min_size=1, max_size=64)
PROOF: Final = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE"


def snapshot(result: str) -> str:
    """A stored snapshot around a result's text (SRC-18)."""
    return (
        '{"schema_version":1,"task_id":"task_1","queue_id":"q_1","state":"succeeded","revision":3,'
        f'"effect_uncertain":false,"current_attempt_id":null,"result":{result}}}'
    )


def a_delivery(snapshot_json: str) -> str:
    """A delivery frame around a snapshot."""
    return writing.delivery(
        writing.delivery_head("r2", "sub_1"),
        delivery_id="dlv_1",
        event_id="evt_1",
        event_type="task.succeeded",
        sequence=4711,
        lease_epoch=1,
        lease_secret=PROOF,
        lease_expires_at=time_text(AT),
        attempts=1,
        attempt_budget=20,
        snapshot_json=snapshot_json,
    )


@pytest.mark.req("orbit:WSS-09", "orbit:T-P05", "orbit:MAT-18")
@given(
    result=st.one_of(
        st.integers(1, 10_000).map(lambda digits: "9" * digits),
        st.sampled_from(
            ["-0", "1.00", "1E+2", "1e400", '"\\u0000"', '"\\ud800"', '{"a":1,"a":2}', ' {"a" : 1}', "null"]
        ),
        st.text(st.characters(exclude_categories=["Cs"])).map(json.dumps),
    )
)
def test_a_snapshot_travels_byte_for_byte_as_the_last_member(result: str) -> None:
    """The frame ends with the stored text, whatever numbers, escapes and spaces it holds: it is never parsed."""
    stored = snapshot(result)
    frame = a_delivery(stored)
    assert frame.endswith(f',"snapshot":{stored}}}')
    assert frame.count(stored) == 1


@pytest.mark.req("orbit:WSS-07", "orbit:WSS-10", "orbit:T-E10")
@given(request_id=IDS, delivery_id=IDS, number=st.integers(1, 1000), duplicate=st.booleans())
def test_every_server_frame_is_valid_against_the_published_schema(
    request_id: str, delivery_id: str, number: int, duplicate: bool
) -> None:
    """One of each kind, with ids from the whole alphabet of ids."""
    frames = [
        writing.hello_ok(
            request_id,
            connection_id="conn_1",
            subscription_id="sub_1",
            status="PAUSED",
            revision=number,
            queue_id="q_1",
            types=["task.failed"],
            capacity=32,
            server_time=AT,
        ),
        a_delivery(snapshot('{"order_no":12345678901234567890}')),
        writing.pull_done(request_id, delivered=0, reason="EMPTY", pending_count=number, max_pending=number),
        writing.acked(request_id, delivery_id, AT, duplicate=duplicate),
        writing.rejected(request_id, delivery_id, "DELIVERY_LEASE_LOST"),
        writing.pong(request_id, AT),
        writing.error(request_id, OrbitError(ErrorCode.PULL_IN_PROGRESS), fatal=False),
    ]
    assert_valid(frames, "hello_ok", "delivery", "pull_done", "ack_result", "pong", "error")
    for frame in frames:
        SERVER_FRAME.validate_json(frame)


@pytest.mark.req("orbit:WSS-11", "orbit:WSS-15")
@pytest.mark.parametrize("code", [code for code, facts in CODES.items() if facts.close is not None], ids=str)
def test_an_error_frame_carries_code_and_text_and_only_published_members(code: ErrorCode) -> None:
    """Extensions of an error that the schema does not name stay inside the server."""
    refused = OrbitError(code, 'say "what"', cursor_sequence=7, retained_from_sequence=101, inner="secret")
    frame = writing.error(None, refused, fatal=True)
    assert_valid([frame], "error")
    assert json.loads(frame) == {
        "type": "error",
        "request_id": None,
        "code": code,
        "message": 'say "what"',
        "fatal": True,
        "cursor_sequence": 7,
        "retained_from_sequence": 101,
    }


@pytest.mark.req("orbit:GEN-08")
@given(moment=st.datetimes(timezones=st.integers(-720, 720).map(lambda m: timezone(timedelta(minutes=m)))))
def test_times_are_utc_with_six_fractional_digits(moment: datetime) -> None:
    """Whatever zone a time comes in, its text is the one form of the wire."""
    try:
        text = time_text(moment)
    except OverflowError:  # the first and last day of the calendar have no UTC
        return
    assert len(text) == len("2026-01-05T08:30:00.000000Z")
    assert datetime.fromisoformat(text) == moment


def test_server_frames_are_refused_from_a_client() -> None:
    """No server message is a client message."""
    with pytest.raises(FrameRefused):
        read_frame(writing.pong("r1", AT))
