-- Purpose: that an attempt's manifest belongs to its run: the subject of the admission, one of its steps, and exactly the
--   charge dimensions that the step was admitted with (REF-17, REF-18).
-- Locks: none.
-- Errors: OW003 something differs.
create or replace function execution.attempt_check(p_manifest jsonb, p_admission jsonb)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_admitted jsonb;
    v_charged jsonb;
begin
    if exists (
        select from unnest(array['tenantKind', 'tenantId', 'workspaceId', 'projectId', 'billingAccountId',
            'billingReservationId', 'runId']) as f (field)
        where p_manifest -> f.field is distinct from p_admission -> f.field) then
        raise exception using errcode = 'OW003', message = 'the attempt belongs to another admission';
    end if;
    select s.step -> 'chargeDimensionKeys' into v_admitted
    from jsonb_array_elements(p_admission -> 'steps') as s (step)
    where s.step ->> 'runStepId' = p_manifest ->> 'runStepId';
    select jsonb_agg(d.dimension -> 'chargeDimensionKey' order by d.position) into v_charged
    from jsonb_array_elements(p_manifest -> 'chargeDimensions') with ordinality as d (dimension, position);
    if v_charged is distinct from v_admitted then
        raise exception using errcode = 'OW003', message = 'the attempt is charged for other dimensions than its step';
    end if;
end $$;
