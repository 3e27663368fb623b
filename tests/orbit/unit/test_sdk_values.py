"""The values of the SDK: frozen, and silent about their secret."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle

import pytest

from orbit.sdk import AckResult, Proof, ReceivedEvent

SECRET = "s" * 43
SNAPSHOT = '{"schema_version":1,"task_id":"task_1","result":{"hush":12345678901234567890}}'


def _event() -> ReceivedEvent:
    return ReceivedEvent(
        subscription_id="sub_1",
        delivery_id="dlv_1",
        event_id="evt_1",
        event_type="task.succeeded",
        sequence=7,
        lease_epoch=2,
        lease_secret=SECRET,
        lease_expires_at="2026-01-05T08:30:00.000000Z",
        attempts=2,
        attempt_budget=20,
        snapshot_text=SNAPSHOT,
    )


@pytest.mark.req("orbit:SDK-17")
def test_a_proof_and_the_answer_to_it_are_frozen_values() -> None:
    """They have the members of the specification, are equal by value, and cannot be changed."""
    proof, answer = _event().proof, AckResult("2026-01-05T08:30:00.000000Z", duplicate=False)
    assert proof == Proof("dlv_1", 2, SECRET)
    assert [one.name for one in dataclasses.fields(proof)] == ["delivery_id", "lease_epoch", "lease_secret"]
    assert [one.name for one in dataclasses.fields(answer)] == ["acked_at", "duplicate"]
    for value, member in ((proof, "lease_epoch"), (answer, "duplicate")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, member, 3)


@pytest.mark.req("orbit:SDK-08", "orbit:T-P09")
def test_a_secret_is_in_no_repr_no_log_and_no_pickle(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever prints, logs or stores an event finds neither its secret nor the result; copies are the thing itself."""
    event = _event()
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("orbit.sdk.consumer").debug("%s %r %s", event, event.proof, [event, event.proof])
    for text in (repr(event), str(event), repr(event.proof), f"{event.proof}", caplog.text):
        assert SECRET not in text
        assert "hush" not in text
    for value in (event, event.proof):
        with pytest.raises(TypeError, match="secret"):
            pickle.dumps(value)
        with pytest.raises(TypeError):
            json.dumps(value)
    assert copy.deepcopy(event) is event
