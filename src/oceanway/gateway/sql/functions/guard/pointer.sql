-- Purpose: the current statement of a chain moves by exactly one state version (REF-22).
-- Locks: none.
-- Errors: 23001.
create or replace function gateway.guard_pointer()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if (new.execution_attempt_id, new.gateway_deployment_id, new.provider_evidence_kind, new.evidence_dimension_key)
        is distinct from (old.execution_attempt_id, old.gateway_deployment_id, old.provider_evidence_kind,
            old.evidence_dimension_key)
        or new.state_version <> old.state_version + 1 then
        raise exception using errcode = '23001', message = 'gateway: a pointer moves by one state version';
    end if;
    return new;
end $$;
