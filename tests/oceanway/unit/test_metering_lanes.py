"""What an event does to a lane, and what a work is about: decisions over values alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from oceanway.contracts.errors import OwnerConflict
from oceanway.metering import lanes
from oceanway.metering.lanes import Source
from tests.kit.oceanway.metering_facts import COST, USAGE, Attempt, Told, new_attempt


def source_of(told: Told) -> Source:
    """The source of an event on its way."""
    return lanes.source_of(json.loads(told.envelope))


def advance(
    attempt: Attempt, told: Told, marks: list[Source], lane: dict[str, Any] | None = None, **more: Any
) -> lanes.Advance:
    """The next generation because of an event."""
    return lanes.advance(
        source_of(told), marks, lane, more.get("work"), manifest=attempt.manifest, moment="2026-06-01T10:00:00.000000Z"
    )


@pytest.mark.req("AMB-36", "MTR-02", "MTR-09")
def test_a_higher_revision_advances_and_may_jump() -> None:
    """Revisions may be skipped: an old one arrives late and is then observed already."""
    attempt = new_attempt()
    first, second, third = (attempt.report(USAGE, "tokens", "pending") for _ in range(3))
    assert lanes.observe(source_of(first), []) == "advanced"
    assert lanes.observe(source_of(third), [source_of(first)]) == "advanced"
    assert lanes.observe(source_of(second), [source_of(third)]) == "already_observed"


@pytest.mark.req("MTR-07", "AMB-36", "RCP-34")
def test_the_same_revision_from_another_event_or_with_another_digest_is_a_conflict() -> None:
    """Nothing decides between two claims about one version."""
    mark = source_of(new_attempt().report(USAGE, "tokens", "pending"))
    assert lanes.observe(mark, [mark]) == "already_observed"
    for other in (
        replace(mark, event_id="0" * 36),
        replace(mark, identity=(*mark.identity[:3], "f" * 64)),
        replace(mark, identity=("another", *mark.identity[1:])),
    ):
        with pytest.raises(OwnerConflict):
            lanes.observe(other, [mark])


@pytest.mark.req("RCP-15", "RCP-16", "RCP-17", "RCP-31", "MTR-04")
def test_usage_goes_to_the_lane_of_eligibility_and_cost_to_a_lane_of_its_own() -> None:
    """Whatever a cost availability says, its lane is that of deployment and dimension."""
    attempt = new_attempt()
    assert lanes.lane_of(source_of(attempt.end())) == {"kind": lanes.ELIGIBILITY}
    assert lanes.lane_of(source_of(attempt.report(USAGE, "tokens", "pending"))) == {"kind": lanes.ELIGIBILITY}
    for state in ("pending", "not_reported", "unavailable", "conflicting", "available"):
        assert lanes.lane_of(source_of(attempt.report(COST, "spend", state))) == {
            "kind": lanes.COST,
            "gatewayDeploymentId": "deployment-1",
            "sourceEvidenceDimensionKey": "spend",
        }


@pytest.mark.req("REF-28", "AMB-46", "RCP-23")
def test_a_work_holds_all_watermarks_so_far_whatever_their_order() -> None:
    """Two orders of arrival end in the same trigger; the operation follows from it."""
    attempt = new_attempt(charges={"a": "one", "b": "two"})
    events = [attempt.end(), attempt.report(USAGE, "two", "pending"), attempt.report(USAGE, "one", "pending")]
    triggers: list[Any] = []
    for order in (events, events[::-1]):
        marks = [source_of(told) for told in order[:-1]]
        made = advance(attempt, order[-1], marks)
        triggers.append(made.work.document["laneTrigger"])
        assert made.state["activeWork"]["meteringInputWorkDigest"] == made.work.quad.digest
    assert triggers[0] == triggers[1]
    assert [item["evidenceDimensionKey"] for item in triggers[0]["usage"]] == ["one", "two"]


@pytest.mark.req("MTR-11", "MTR-13", "REF-27", "AMB-09")
def test_a_started_work_gets_its_superseded_finish_and_one_never_started_gets_none() -> None:
    """The body names the latest attempt and the generation that follows, so both of its writers make the same one."""
    attempt = new_attempt()
    first, second = attempt.report(COST, "spend", "pending"), attempt.report(COST, "spend", "available")
    made = advance(attempt, first, [])
    lane = {"latest_work_generation": 1, "attempt_number": 0, "fencing_token": None}
    assert advance(attempt, second, [source_of(first)], lane, work=made.work.data).superseded is None
    lane |= {"attempt_number": 2, "fencing_token": 77}
    finish = advance(attempt, second, [source_of(first)], lane, work=made.work.data).superseded
    assert finish is not None
    late = lanes.superseded(made.work.document, 2, 77, "2027-01-01T00:00:00.000000Z")
    assert late.quad == finish.quad
    assert finish.document["outcome"] == {
        "kind": "provider_cost",
        "state": "superseded",
        "supersededByWorkGeneration": 2,
    }
    assert (finish.document["attemptNumber"], finish.document["fencingToken"]) == (2, "77")
