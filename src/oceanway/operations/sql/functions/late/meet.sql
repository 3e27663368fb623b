-- Purpose: brings together a state of a dimension and the late case it opens or closes, whichever came second (CASE-27).
-- Locks: none of its own; the caller has entered the event.
-- Errors: OW001 the two say different things.
create or replace function operations.late_meet(p_version text, p_dimension text, p_revision bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_state operations.dimension_revision;
    v_case operations.late_case;
begin
    select * into v_state from operations.dimension_revision as r
    where r.projection_version = p_version and r.settlement_dimension_id = p_dimension and r.revision = p_revision;
    if not found then
        return;
    end if;
    select * into v_case from operations.late_case as c
    where c.projection_version = p_version and c.case_ref = v_state.case_ref;
    if not found then
        return;
    end if;
    if v_case.settlement_dimension_id <> p_dimension
        or (v_state.kind = 'request_open' and v_case.request_event_id is not null
            and (v_case.opened_revision, v_case.request_causation_id) is distinct from (p_revision, v_state.event_id))
        or (v_state.kind <> 'request_open' and v_case.resolution_event_id is not null
            and (v_case.resolved_revision, v_case.resolution_causation_id, v_case.resolution_kind,
                v_case.resolution_fact_ref, v_case.resolution_fact_digest)
                is distinct from (p_revision, v_state.event_id, case v_state.kind when 'resolve'
                    then 'settlement_transition' else 'late_settlement_command_result' end,
                v_state.fact_ref, v_state.fact_digest)) then
        raise exception using errcode = 'OW001', message = 'the late case and the state of its dimension disagree';
    end if;
    if v_state.kind <> 'request_open' and v_case.resolution_event_id is not null then
        update operations.late_case as c
        set effect_event_id = v_state.event_id,
            state = operations.late_state(c.request_event_id, c.resolution_event_id, v_state.event_id)
        where c.projection_version = p_version and c.case_ref = v_state.case_ref;
    end if;
end $$;
