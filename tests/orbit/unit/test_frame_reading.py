"""Client frames: the short way, the models and the published schema accept the same frames and read the same values."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orbit.model.codes import ErrorCode
from orbit.server.ws import reading
from orbit.server.ws.reading import FrameRefused, read_frame
from orbit.wire.frames import CLIENT_FRAME, Ack, Hello, Ping, Pull
from tests.kit.orbit.frames import is_valid

PROOF: Final = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE"
ACK: Final[dict[str, Any]] = {
    "type": "ack",
    "request_id": "r3",
    "delivery_id": "dlv_1",
    "lease_epoch": 1,
    "lease_secret": PROOF,
}
PULL: Final[dict[str, Any]] = {"type": "pull", "request_id": "r2", "max": 8, "wait_ms": 20000}
HELLO: Final[dict[str, Any]] = {
    "type": "hello",
    "request_id": "r1",
    "subscription_id": "sub_1",
    "capacity": 8,
    "client": 'a "quoted" name',
}
PING: Final[dict[str, Any]] = {"type": "ping", "request_id": "r4"}
GOOD: Final = (ACK, PULL, HELLO, PING)

NASTY: Final = st.one_of(
    st.sampled_from(
        [
            None,
            True,
            False,
            0,
            1,
            -1,
            1.0,
            32,
            33,
            32.0,
            1.5,
            30000,
            30001,
            2**63 - 1,
            2**63,
            float(2**63),
            2**70,
            1e300,
        ]
    ),
    st.sampled_from(["", "r1", "r1\n", "ä", "r" * 64, "r" * 65, PROOF, PROOF + "\n", PROOF[:-1], "x" * 128, "x" * 129]),
    st.sampled_from(["hello", "pull", "ack", "ping", "pong", "delivery", [], {}, ["ack"], {"a": 1}]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.integers(),
)
NAMES: Final = (
    "type",
    "request_id",
    "delivery_id",
    "lease_epoch",
    "lease_secret",
    "max",
    "wait_ms",
    "capacity",
    "client",
)


@st.composite
def almost_frames(draw: st.DrawFn) -> dict[str, Any]:
    """A good frame, changed in up to three members."""
    frame = dict(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from((*frame, *NAMES, "extra")))
        if draw(st.booleans()):
            frame.pop(name, None)
        else:
            frame[name] = draw(NASTY)
    return frame


def members_of(message: reading.ClientMessage) -> dict[str, Any]:
    """The members as sent, with the defaults of those left out."""
    if isinstance(message, tuple):
        return dict(zip(("request_id", "delivery_id", "lease_epoch", "lease_secret"), message, strict=True)) | {
            "type": "ack"
        }
    return message.model_dump()


@pytest.mark.req("orbit:WSS-04", "orbit:GEN-10", "orbit:T-N22")
@settings(max_examples=400)
@given(frame=almost_frames(), spaced=st.booleans())
@example(frame=ACK | {"lease_epoch": 1.0}, spaced=False)
@example(frame=PULL | {"max": True}, spaced=False)
@example(frame=PULL | {"wait_ms": True}, spaced=False)
@example(frame=ACK | {"lease_epoch": True}, spaced=False)
@example(frame=ACK | {"connection_id": "conn_1"}, spaced=False)
def test_a_client_frame_is_read_if_and_only_if_the_published_schema_allows_it(
    frame: dict[str, Any], spaced: bool
) -> None:
    """Both readers refuse what the schema refuses, accept what it accepts, and give the values that were sent."""
    text = json.dumps(frame, ensure_ascii=spaced, separators=(", ", " : ") if spaced else (",", ":"))
    expected = is_valid(frame, "hello", "pull", "ack", "ping")
    if not expected:
        with pytest.raises(FrameRefused) as caught:
            read_frame(text)
        assert caught.value.error.code is ErrorCode.INVALID_MESSAGE
        return
    message = read_frame(text)
    defaults = {"wait_ms": 0} if frame["type"] == "pull" else {"client": ""} if frame["type"] == "hello" else {}
    assert members_of(message) == defaults | frame
    assert members_of(message) == CLIENT_FRAME.validate_python(frame).model_dump()


@pytest.mark.req("orbit:WSS-04")
@pytest.mark.parametrize(
    ("frame", "kind"), [(ACK, tuple), (PULL, Pull), (HELLO, Hello), (PING, Ping)], ids=["ack", "pull", "hello", "ping"]
)
def test_each_client_frame_is_read(frame: dict[str, Any], kind: type) -> None:
    """A good frame of each kind is read, in any order of its members."""
    assert isinstance(read_frame(json.dumps(frame)), kind)
    assert isinstance(read_frame(json.dumps(dict(reversed(frame.items())))), kind)


@pytest.mark.req("orbit:WSS-04")
@pytest.mark.parametrize("frame", GOOD, ids=[frame["type"] for frame in GOOD])
def test_a_member_named_twice_is_refused(frame: dict[str, Any]) -> None:
    """Readers disagree about which of two equal names counts, so such a frame is refused, even with equal values."""
    for name, value in frame.items():
        text = json.dumps(frame)[:-1] + f", {json.dumps(name)}: {json.dumps(value)}}}"
        with pytest.raises(FrameRefused, match="twice"):
            read_frame(text)


@pytest.mark.req("orbit:WSS-04")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '"ack"',
        "{",
        "{}{}",
        "[" * 60_000,
        '{"type":"ping","request_id":"r","x":' + "[" * 20_000 + "]" * 20_000 + "}",
        '{"type":"pull","request_id":"r","max":NaN}',
        '{"type":"pull","request_id":"r","max":-Infinity}',
        '{"type":"pull","request_id":"r","max":' + "9" * 5000 + "}",
        '{"type":"pull","request_id":"r","max":1e400}',
        '{"type":"ack","request_id":"r","delivery_id":"d","lease_epoch":9223372036854775808,"lease_secret":"'
        + PROOF
        + '"}',
        '{"type":"hello","request_id":"r","subscription_id":"s","capacity":1,"client":"\\ud800"}',
    ],
    ids=str,
)
def test_what_is_no_json_object_is_refused_and_never_fails(text: str) -> None:
    """Broken text, deep nesting and numbers beyond every range end in the same refusal."""
    with pytest.raises(FrameRefused):
        read_frame(text)


@pytest.mark.req("orbit:WSS-11", "orbit:T-P09")
def test_a_refusal_names_the_request_and_the_place_but_no_value() -> None:
    """The client finds its frame by `request_id`; what it sent is not repeated, for it may be a proof."""
    with pytest.raises(FrameRefused) as caught:
        read_frame(json.dumps(ACK | {"lease_secret": PROOF + "x", "lease_epoch": 0}))
    assert caught.value.request_id == "r3"
    assert "lease_epoch" in caught.value.error.detail
    assert PROOF not in str(caught.value)
    with pytest.raises(FrameRefused) as caught:
        read_frame(json.dumps(ACK | {PROOF: 1}))
    assert PROOF not in caught.value.error.detail


@pytest.mark.req("orbit:T-P09")
def test_frames_do_not_show_their_proof() -> None:
    """`repr` of an `ack` leaves the proof out."""
    assert PROOF not in repr(Ack.model_validate(ACK))


def test_the_short_way_is_the_way_of_every_ordinary_ack_and_pull(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hot frames never reach the models, which take several times as long."""
    monkeypatch.setattr(reading, "_read_slowly", None)
    assert read_frame(json.dumps(ACK)) == ("r3", "dlv_1", 1, PROOF)
    assert read_frame(json.dumps(PULL)) == Pull.model_validate(PULL)
    assert read_frame('{"type":"pull","request_id":"r2","max":8}') == Pull(type="pull", request_id="r2", max=8)
