"""`kill -9` of the receiver example at each of its points, with both kinds of inbox; `make orbit-kills` is longer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kit.database import DatabaseServer
from tests.kit.orbit.receivers import FAILPOINTS, Receiver, assert_received, stage
from tests.orbit.fault.kills import Victim, make_victims

REAL_LEASE_SECONDS_MIN = 30


@pytest.mark.timeout(180)
@pytest.mark.req(
    "orbit:T-C04", "orbit:T-C05", "orbit:T-C06", "orbit:EXM-02", "orbit:EXM-03", "orbit:EXM-04", "orbit:EXM-06",
    "orbit:EXM-08", "orbit:EXM-10", "orbit:SDK-09", "orbit:SDK-10", "orbit:LSE-21", "orbit:GEN-02",
)  # fmt: skip
def test_a_receiver_killed_at_any_point_loses_nothing_and_applies_nothing_twice(
    database_server: DatabaseServer, tmp_path: Path
) -> None:
    """Twenty results of all four types; one kill at each point; the inbox is the journal, and the history is clean.

    One receiver waits for its real lease of 30 seconds while the others, whose leases are ended by hand, are killed.
    """
    with ExitStack() as stack:
        open_stage = stack.enter_context(stage(database_server, tmp_path))
        open_stage.produce()
        patient = Receiver("patient", open_stage, str(tmp_path / "patient.db"))
        stack.callback(patient.close)
        patient.start("after_commit")
        assert patient.await_marker("after_commit", hurry=False)
        patient.kill(age=False)
        patient.start()

        victims = make_victims(database_server, open_stage, stack, points=FAILPOINTS, seed=1)
        with ThreadPoolExecutor(3) as crowd:
            list(crowd.map(_kill_once, victims))
            assert open_stage.resolve_reviews() == 5
            list(crowd.map(Victim.drain, victims))
        patient.await_drained(hurry=False)
        patient.stop()

        journal = open_stage.journal()
        assert len(journal) == 25
        for receiver in (patient, *(victim.receiver for victim in victims)):
            assert_received(receiver, journal)
            assert receiver.kills == 1
        for receiver in (patient, *(victim.receiver for victim in victims if victim.point == "after_commit")):
            assert max(receiver.attempts()) >= 2
        verdict = open_stage.verdict()
        assert verdict.holds, verdict.violations


def _kill_once(victim: Victim) -> None:
    """Stop at the point, look at what the local transaction has left, and kill."""
    receiver = victim.receiver
    receiver.start(victim.point)
    assert receiver.await_marker(victim.point, hurry=False)
    receiver.kill(age=True)
    inbox, counters = receiver.contents().inbox, receiver.contents().counters
    if victim.point in {"before_tx", "in_tx"}:
        assert inbox == []
    else:
        assert inbox
    assert sum(counters.values()) == len(inbox)
