"""What the database of metering refuses by itself, whoever writes: causes, facts, moves of lanes, changes of facts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from oceanway.contracts.errors import Incomplete, InvalidArgument, Stale
from oceanway.metering import lanes, store
from oceanway.metering.committing import commit
from oceanway.metering.documents import read
from oceanway.metering.outcomes import Applied, LocalConflict, Processed
from seapost.contracts.canonical import encode
from tests.kit.database import TestDatabase
from tests.kit.oceanway.metering import AT_ONCE, Metering, running_metering
from tests.kit.oceanway.metering_facts import COST, MOMENT, USAGE, Attempt

SERVICE = "oceanway_metering_service"


@pytest.fixture(scope="module")
def metering(metering_database: TestDatabase) -> Iterator[Metering]:
    """Give one metering to all tests here; every test has attempts of its own."""
    with running_metering(metering_database) as bench:
        yield bench


def refused(metering: Metering, kind: type[Exception], statement: LiteralString, *values: object) -> None:
    """The statement breaks a rule even for a superuser."""
    with pytest.raises(kind):
        metering.admin.execute(statement, values)


def blocked(metering: Metering) -> Attempt:
    """An attempt whose both lanes are blocked by metering's own judgement."""
    attempt = metering.new_attempt()
    metering.accept(
        attempt.end(),
        attempt.report(USAGE, "tokens", "available", unit="second"),
        attempt.report(COST, "spend", "available", currency="USD"),
    )
    metering.work()
    metering.retire(attempt)
    return attempt


COPY_BLOCKED: LiteralString = """
insert into metering.work_blocked
select n.* from metering.work_blocked as b
join metering.work as w using (metering_input_work_ref)
cross join lateral jsonb_populate_record(b, %s::jsonb || '{"metering_input_work_attempt_blocked_ref": "copy"}') as n
where w.execution_attempt_id = %s and w.lane_kind = %s
"""


@pytest.mark.req("MTR-21", "MTR-22", "NEG-14", "RCP-26")
@pytest.mark.parametrize(
    ("lane", "cause"),
    [
        ("provider_cost", "gateway_usage_owner_conflict"),
        ("provider_cost", "gateway_binding_owner_conflict"),
        ("provider_cost", "execution_eligibility_owner_conflict"),
        ("provider_cost", "eligibility_processing_conflict"),
        ("eligibility_and_settlement_input", "provider_cost_processing_conflict"),
        ("eligibility_and_settlement_input", "something_else"),
        ("eligibility_and_settlement_input", "gateway_usage_owner_conflict"),  # with evidence and without a fact
    ],
)
def test_a_lane_is_blocked_only_by_its_own_causes(metering: Metering, lane: str, cause: str) -> None:
    """Cause, evidence and lane refine each other."""
    attempt = blocked(metering)
    refused(metering, psycopg.errors.CheckViolation, COPY_BLOCKED, json.dumps({"cause_kind": cause}), attempt.ref, lane)


COPY_EVIDENCE: LiteralString = """
insert into metering.cost_conflict_evidence
select n.* from metering.cost_conflict_evidence as e
join metering.work as w using (metering_input_work_ref)
cross join lateral jsonb_populate_record(e,
    %s::jsonb || '{"provider_cost_processing_conflict_evidence_ref": "copy"}') as n
where w.execution_attempt_id = %s
"""


@pytest.mark.req("MTR-17", "MTR-22", "MTR-23", "MTR-24", "NEG-14", "RCP-36")
@pytest.mark.parametrize(
    "change",
    [
        {"conflicting_candidate_digest": None},
        {"conflicting_candidate_digest_algorithm_version": None},
        {"validation_stage": None},
        {"validation_stage": "unknown_stage"},
        {"cause_kind": "gateway_owner_conflict"},
        {"owner_conflict_fact_ref": "fact"},
        {"cause_kind": "execution_eligibility_owner_conflict"},
        {"gateway_deployment_id": ""},
        {"source_evidence_dimension_key": ""},
        {"gateway_deployment_id": None},
        {"source_evidence_dimension_key": None},
        {"gateway_deployment_id": "deployment-2"},
    ],
)
def test_evidence_of_a_cost_conflict_is_complete(metering: Metering, change: dict[str, Any]) -> None:
    """Local causes keep the candidate's digest; deployment and dimension are never dropped nor another lane's."""
    attempt = blocked(metering)
    refused(metering, psycopg.errors.IntegrityError, COPY_EVIDENCE, json.dumps(change), attempt.ref)


@pytest.mark.req("MTR-33", "NEG-15", "MTR-30", "MTR-31")
@pytest.mark.parametrize("state", ["not_reported", "unavailable", "pending", "conflicting"])
def test_a_cost_fact_exists_only_through_available_evidence(metering: Metering, state: str) -> None:
    """Neither a processing without evidence nor a forged outcome gives it a place."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", state))
    metering.work()
    insert: LiteralString = (
        "insert into metering.provider_cost_fact select 'forged', c.provider_cost_availability_processing_ref, {},"
        " w.execution_attempt_id, c.gateway_deployment_id, c.source_evidence_dimension_key, 1, 'EUR', 'evidence',"
        " c.digest, c.document from metering.cost_processing as c"
        " join metering.work as w using (metering_input_work_ref)"
        " where w.execution_attempt_id = %s"
    )
    refused(metering, psycopg.errors.CheckViolation, insert.replace("{}", "c.outcome"), attempt.ref)
    forged = insert.replace("{}", "'available_applied'")
    refused(metering, psycopg.errors.ForeignKeyViolation, forged, attempt.ref)
    assert metering.documents("provider_cost_fact", attempt) == []


NOT_WRITTEN = (
    "work_finish",
    "cost_processing",
    "provider_cost_fact",
    "eligibility_decision",
    "settlement_input_snapshot",
)


@pytest.mark.req("NEG-16", "MTR-25", "MTR-37", "MTR-41", "RCP-28")
def test_a_blocked_work_has_record_and_evidence_and_nothing_else(metering: Metering) -> None:
    """No finish, no processing, no fact, no case; the same work stays active without a lease."""
    attempt = blocked(metering)
    for table in (
        "work_finish",
        "cost_processing",
        "provider_cost_fact",
        "eligibility_decision",
        "settlement_input_snapshot",
    ):
        assert metering.documents(table, attempt) == [], table
    for dimension, table in ((None, "eligibility_conflict_evidence"), ("spend", "cost_conflict_evidence")):
        lane = metering.lane(attempt, dimension)
        assert lane["active_work_ref"] is not None
        assert lane["lease_owner"] is None
        assert len(metering.documents(table, attempt)) == 1
    columns = metering.admin.execute(
        "select attname from pg_attribute where attrelid = any (array['metering.work_blocked',"
        " 'metering.cost_conflict_evidence', 'metering.lane', 'metering.cost_processing']::regclass[])"
    )
    assert not [name for (name,) in columns if "case" in name]


@pytest.mark.req("MTR-37", "NEG-16", "MTR-25")
def test_a_blocked_state_cannot_end_a_work_nor_a_finish_block_it(metering: Metering) -> None:
    """The functions take only documents of one outcome."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", "pending"))
    [task] = [one for one in metering.cost.claim(50) if one.work["executionAttemptId"] == attempt.ref]
    [outcome] = metering.cost.judge([task])
    assert isinstance(outcome, Processed)
    outcome.processing.document["outcome"] = {"state": "available_applied"}
    pending = encode(lanes.pending(task.work))
    finish = lanes.superseded(task.work, task.attempt_number, task.token, MOMENT)
    with metering.database.connect(SERVICE) as connection:
        with pytest.raises(InvalidArgument):
            store.process(
                connection,
                token=task.token,
                processing=outcome.processing.data,
                fact=None,
                receipts=[],
                finish=finish.data,
                state=pending,
            )
        connection.rollback()
        with pytest.raises(InvalidArgument):
            store.wait(connection, token=task.token, finish=finish.data, state=pending)
    metering.expire(attempt)
    metering.work()


FACTS = (
    "attempt_input_fence",
    "work",
    "work_start",
    "work_finish",
    "work_blocked",
    "eligibility_conflict_evidence",
    "cost_conflict_evidence",
    "validation_receipt",
    "eligibility_decision",
    "meter_event",
    "cost_processing",
    "provider_cost_fact",
    "settlement_input_snapshot",
    "event_source",
)


@pytest.mark.req("SEC-06", "REF-26", "REF-27")
def test_facts_suffer_neither_change_nor_removal_and_runtime_roles_touch_no_table(metering: Metering) -> None:
    """Functions alone write; the auditor reads."""
    blocked(metering)
    attempt = metering.new_attempt()
    metering.accept(
        attempt.end(), attempt.report(USAGE, "tokens", "available"), attempt.report(COST, "spend", "available")
    )
    metering.work()
    for table in FACTS:
        refused(metering, psycopg.errors.RestrictViolation, f"delete from metering.{table}")  # noqa: S608 - a constant
        column = metering.admin.execute(
            "select attname from pg_attribute where attrelid = %s::regclass and attnum = 1", (f"metering.{table}",)
        ).fetchone()
        assert column is not None
        with pytest.raises(psycopg.errors.RestrictViolation):
            metering.admin.execute(
                sql.SQL("update {table} set {column} = {column}").format(
                    table=sql.Identifier("metering", table), column=sql.Identifier(column[0])
                )
            )
        for role in (SERVICE, "oceanway_metering_consumer", "oceanway_metering_reader"):
            with metering.database.connect(role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"select from metering.{table}")
        with metering.database.connect("oceanway_auditor") as connection:
            assert connection.execute(f"select from metering.{table} limit 1").fetchone() is not None, table


@pytest.mark.req("MTR-02", "AMB-36", "RCP-30", "REF-26")
def test_watermarks_pointers_and_lanes_only_move_forward(metering: Metering) -> None:
    """Even a superuser cannot take them back."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end(), attempt.report(USAGE, "tokens", "available"))
    metering.work()
    jump: LiteralString = (
        "update metering.lane set latest_work_generation = latest_work_generation + 2,"
        " fence_revision = fence_revision + 2 where execution_attempt_id = %s"
    )
    for statement in (
        jump,
        "update metering.watermark set state_version = state_version where execution_attempt_id = %s",
        "update metering.lane set fence_revision = fence_revision + 1 where execution_attempt_id = %s",
        "update metering.lane set fencing_token = fencing_token - 1 where execution_attempt_id = %s",
        "update metering.lane set state = 'pending' where execution_attempt_id = %s",
        "update metering.lane set trigger_digest = 'x' where execution_attempt_id = %s",
        "update metering.settlement_pointer set settlement_input_state_version = 1 where execution_attempt_id = %s",
        "delete from metering.lane where execution_attempt_id = %s",
        "delete from metering.watermark where execution_attempt_id = %s",
        "delete from metering.settlement_pointer where execution_attempt_id = %s",
    ):
        refused(metering, psycopg.errors.IntegrityError, statement, attempt.ref)


NO_SUCH_EVENT = "01a2303b-0000-7000-8000-000000000000"
NEXT_SNAPSHOT: LiteralString = """
insert into metering.settlement_input_snapshot select n.* from metering.settlement_input_snapshot as s
cross join lateral jsonb_populate_record(s, jsonb_build_object(
    'settlement_input_snapshot_ref', s.settlement_dimension_id, 'settlement_input_state_version', 2,
    'predecessor_state_version', 1, 'current_changed_event_id', %s::uuid)) as n
where s.execution_attempt_id = %s and s.charge_dimension_key = 'a'
"""
SECOND_EVENT: LiteralString = """
insert into metering.event_source select e.event_type, e.source_fact_key, gen_random_uuid()
from metering.event_source as e
join metering.settlement_input_snapshot as s on s.settlement_input_snapshot_ref = e.source_fact_key
where s.execution_attempt_id = %s
"""


@pytest.mark.req("APP-24", "APP-25", "APP-26", "TST-13", "NEG-50", "AMB-41", "REF-32")
def test_a_snapshot_without_its_event_or_with_a_wrong_one_is_refused(metering: Metering) -> None:
    """No event, one too many, that of another dimension, or one that says something else."""
    attempt = metering.new_attempt(charges={"a": "tokens", "b": "tokens"})
    metering.accept(attempt.end(), attempt.report(USAGE, "tokens", "available", "5"))
    [task] = [one for one in metering.eligibility.claim(50) if one.work["executionAttemptId"] == attempt.ref]
    [outcome] = metering.eligibility.judge([task])
    assert isinstance(outcome, Applied)
    first, second = outcome.envelopes
    document = read(first)
    document["payload"]["settlementInputSnapshotDigest"] = "0" * 64
    forged = encode(document)
    wrong_events: tuple[list[bytes], ...] = ([], [first], [first, second, second], [second, first], [forged, second])
    wrong = [(replace(outcome, envelopes=envelopes), InvalidArgument) for envelopes in wrong_events]
    wrong += [(replace(outcome, items=items), Incomplete) for items in ([], outcome.items[:1])]
    for candidate, error in wrong:
        with metering.database.connect(SERVICE) as connection, pytest.raises(error):
            commit(connection, task, candidate, moment=MOMENT, backoff=AT_ONCE)
    metering.eligibility.settle([task], [outcome])
    assert len(metering.current(attempt)) == 2
    refused(metering, psycopg.errors.ForeignKeyViolation, NEXT_SNAPSHOT, NO_SUCH_EVENT, attempt.ref)
    refused(metering, psycopg.errors.NotNullViolation, NEXT_SNAPSHOT, None, attempt.ref)
    refused(metering, psycopg.errors.UniqueViolation, SECOND_EVENT, attempt.ref)
    metering.check()


@pytest.mark.req("REF-32", "TST-18")
def test_a_version_of_a_dimension_has_one_snapshot_and_versions_leave_no_hole(metering: Metering) -> None:
    """Neither a second content of one version nor a jump."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end(), attempt.report(USAGE, "tokens", "available", "5"))
    metering.work()
    copy: LiteralString = (
        "insert into metering.settlement_input_snapshot select n.* from metering.settlement_input_snapshot as s"
        ' cross join lateral jsonb_populate_record(s, %s::jsonb || \'{"settlement_input_snapshot_ref": "x"}\') as n'
        " where s.execution_attempt_id = %s"
    )
    refused(metering, psycopg.errors.UniqueViolation, copy, json.dumps({"digest": "d" * 64}), attempt.ref)
    jump = json.dumps({"settlement_input_state_version": 3, "predecessor_state_version": 1})
    refused(metering, psycopg.errors.CheckViolation, copy, jump, attempt.ref)
    hole = json.dumps({"settlement_input_state_version": 3, "predecessor_state_version": 2})
    refused(metering, psycopg.errors.IntegrityError, copy, hole, attempt.ref)


@pytest.mark.req("MTR-11", "MTR-02", "AMB-46")
def test_a_started_work_is_never_replaced_without_its_finish(metering: Metering) -> None:
    """And a lane that moved is refused."""
    attempt = metering.new_attempt()
    first = attempt.report(COST, "spend", "pending")
    metering.accept(first)
    assert [one for one in metering.cost.claim(50) if one.work["executionAttemptId"] == attempt.ref]
    told = attempt.report(COST, "spend", "available")
    manifest = metering.manifest(attempt)
    for expected, error in ((1, Incomplete), (2, Stale)):
        with metering.database.connect("oceanway_metering_consumer") as connection:
            marks, lane, work = store.lock(connection, envelope=told.envelope, manifest=manifest)
            assert lane is not None
            made = lanes.advance(
                lanes.source_of(read(told.envelope)),
                [lanes.watermark_of(mark) for mark in marks],
                {**lane, "latest_work_generation": expected},
                work,
                manifest=attempt.manifest,
                moment=MOMENT,
            )
            with pytest.raises(error):
                store.advance(
                    connection,
                    envelope=told.envelope,
                    work=made.work.data,
                    state=encode(made.state),
                    superseded=None,
                    expected_revision=expected,
                )
    metering.accept(told)
    metering.work()
    metering.check()


def test_a_local_conflict_found_again_has_the_same_evidence(metering: Metering) -> None:
    """Every attempt has its record; what it found has one identity."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", "available", currency="USD"))
    metering.work()
    metering.work()
    [evidence] = metering.documents("cost_conflict_evidence", attempt)
    records = metering.documents("work_blocked", attempt)
    assert [one["attemptNumber"] for one in records] == [1, 2]
    assert {one["blockingCause"]["providerCostProcessingConflictEvidenceRef"] for one in records} == {
        evidence["providerCostProcessingConflictEvidenceRef"]
    }
    metering.retire(attempt)
    assert isinstance(LocalConflict("x", "y", evidence).digest, str)
