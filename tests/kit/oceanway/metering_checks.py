"""What must be true of metering's database at any time: each query gives the rows that break its rule."""

# ruff: noqa: S608 - constants alone are put together

from __future__ import annotations

from typing import Final, LiteralString

_TABLES: Final[tuple[LiteralString, ...]] = (
    "metering.attempt_input_fence",
    "metering.watermark",
    "metering.work",
    "metering.work_start",
    "metering.work_finish",
    "metering.work_blocked",
    "metering.eligibility_conflict_evidence",
    "metering.cost_conflict_evidence",
    "metering.validation_receipt",
    "metering.eligibility_decision",
    "metering.meter_event",
    "metering.cost_processing",
    "metering.provider_cost_fact",
    "metering.settlement_input_snapshot",
    "metering.settlement_pointer",
    "metering.event_source",
    "seapost.event",
    "seapost.inbox_receipt",
)

FACT_TABLES: Final[tuple[LiteralString, ...]] = tuple(
    "select count(*), coalesce(sum(hashtext(t::text)), 0) from " + table + " as t" for table in _TABLES
)

_LANE_OF_WORK: Final = (
    " metering.work as w join metering.lane as l on (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id,"
    " l.source_evidence_dimension_key) = (w.execution_attempt_id, w.lane_kind, w.gateway_deployment_id,"
    " w.source_evidence_dimension_key) "
)

CHECKS: Final[dict[LiteralString, LiteralString]] = {
    "only the latest work is active": (
        "select w.metering_input_work_ref from" + _LANE_OF_WORK + "where l.active_work_ref = w.metering_input_work_ref"
        " and w.work_generation <> l.latest_work_generation"
    ),
    "the active work has no finish, the latest one that is not active has one": (
        "select w.metering_input_work_ref from" + _LANE_OF_WORK + "where w.work_generation = l.latest_work_generation"
        " and (l.active_work_ref is null) <> exists (select from metering.work_finish as f"
        " where f.metering_input_work_ref = w.metering_input_work_ref)"
    ),
    "an earlier work has a finish exactly if it was started": (
        "select w.metering_input_work_ref from" + _LANE_OF_WORK + "where w.work_generation < l.latest_work_generation"
        " and exists (select from metering.work_start as s where s.metering_input_work_ref = w.metering_input_work_ref)"
        " <> exists (select from metering.work_finish as f where f.metering_input_work_ref = w.metering_input_work_ref)"
    ),
    "generations are contiguous": (
        "select l.execution_attempt_id from metering.lane as l where l.latest_work_generation <> (select count(*) from"
        " metering.work as w where (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id,"
        " l.source_evidence_dimension_key) = (w.execution_attempt_id, w.lane_kind, w.gateway_deployment_id,"
        " w.source_evidence_dimension_key)) or l.fence_revision <> l.latest_work_generation"
    ),
    "the lane's trigger is that of its latest work": (
        "select l.execution_attempt_id from" + _LANE_OF_WORK + "where w.work_generation = l.latest_work_generation"
        " and w.trigger_digest <> l.trigger_digest"
    ),
    "a superseded finish is of the latest attempt": (
        "select f.metering_input_work_ref from metering.work_finish as f where f.attempt_number <> (select"
        " max(s.attempt_number) from metering.work_start as s"
        " where s.metering_input_work_ref = f.metering_input_work_ref)"
    ),
    "the pointer is at the newest of contiguous snapshots": (
        "select p.settlement_dimension_id from metering.settlement_pointer as p where p.settlement_input_state_version"
        " <> (select count(*) from metering.settlement_input_snapshot as s"
        " where s.settlement_dimension_id = p.settlement_dimension_id)"
    ),
    "every snapshot has its event, and every event its snapshot": (
        "select s.settlement_input_snapshot_ref from metering.settlement_input_snapshot as s full join"
        " metering.event_source as e on e.source_fact_key = s.settlement_input_snapshot_ref"
        " and e.event_id = s.current_changed_event_id left join seapost.event as v on v.event_id = e.event_id"
        " where s.settlement_input_snapshot_ref is null or v.event_id is null"
    ),
    "a cost fact belongs to available evidence": (
        "select f.provider_cost_fact_ref from metering.provider_cost_fact as f where not exists (select from"
        " metering.cost_processing as c where c.provider_cost_fact_ref = f.provider_cost_fact_ref"
        " and c.outcome = 'available_applied')"
    ),
    "every blocked lane names its newest record": (
        "select l.execution_attempt_id from metering.lane as l where l.state like 'blocked%'"
        " and not exists (select from metering.work_blocked as b where b.metering_input_work_ref = l.active_work_ref"
        " and b.metering_input_work_attempt_blocked_ref"
        " = l.coordination_state ->> 'meteringInputWorkAttemptBlockedRef')"
    ),
}

ALL_CHECKS: Final[LiteralString] = " union all ".join(
    "(select '" + rule.replace("'", "''") + "', q.x from (" + query + ") as q (x) limit 3)"
    for rule, query in CHECKS.items()
)
"""All of them in one statement: the broken rule, and the row that breaks it."""
