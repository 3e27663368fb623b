-- Purpose: a watermark only rises, and stays that of its source (MTR-02, AMB-36).
-- Locks: none.
-- Errors: 23001.
create or replace function metering.guard_watermark()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if (new.execution_attempt_id, new.source_kind, new.gateway_deployment_id, new.dimension_key)
        is distinct from (old.execution_attempt_id, old.source_kind, old.gateway_deployment_id, old.dimension_key)
        or new.state_version <= old.state_version then
        raise exception using errcode = '23001', message = 'metering: a watermark only rises';
    end if;
    return new;
end $$;
