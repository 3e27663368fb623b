-- Purpose: makes the cases of a fence what the decision says, oldest generation first, so that one ends before the next
--   opens; a successor that becomes a case is consumed by the resolution of its predecessor (CASE-11, CASE-13).
-- Locks: none of its own.
-- Errors: 23505 a second open case; 23001 a case that would be opened again.
create or replace function operations.case_materialise(p_version text, p_fence text, p_cases jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_case record;
begin
    for v_case in
        select c.* from jsonb_to_recordset(p_cases) as c (generation bigint, state text, case_ref text,
            request_event_id uuid, resolution_event_id uuid, fact_ref text, fact_digest text,
            consumed_by_event_id uuid, consumed_by_fact_ref text, consumed_by_fact_digest text)
        order by c.generation
    loop
        insert into operations.finalization_case as k (projection_version, fence_id, generation, operation_id, case_ref,
            state, request_event_id, resolution_event_id, resolution_fact_ref, resolution_fact_digest)
        select p_version, p_fence, v_case.generation, q.operation_id, v_case.case_ref, v_case.state,
            v_case.request_event_id, v_case.resolution_event_id, v_case.fact_ref, v_case.fact_digest
        from operations.finalization_case_request as q
        where q.projection_version = p_version and q.fence_id = p_fence and q.generation = v_case.generation
        on conflict (projection_version, fence_id, generation) do update
        set state = excluded.state, resolution_event_id = excluded.resolution_event_id,
            resolution_fact_ref = excluded.resolution_fact_ref, resolution_fact_digest = excluded.resolution_fact_digest
        where k.state <> excluded.state;
        if v_case.consumed_by_event_id is not null then
            update operations.pending_case_successors_v1 as s
            set state = 'consumed', consumed_by_event_id = v_case.consumed_by_event_id,
                consumed_by_resolution_fact_ref = v_case.consumed_by_fact_ref,
                consumed_by_resolution_fact_digest = v_case.consumed_by_fact_digest, consumed_at = clock_timestamp()
            where s.projection_version = p_version and s.fence_id = p_fence and s.generation = v_case.generation
              and s.state = 'pending';
        end if;
    end loop;
end $$;
