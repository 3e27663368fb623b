-- Purpose: locks the fence that a coordinator event is about and returns its state, with the stored resolution that the event
--   names, if it names one (FIN-02, FIN-09).
-- Locks: as `finalization_fence_lock_v1`.
-- Errors: none; no row when the reservation is not bound yet (FIN-13).
create or replace function billing.coordinator_lock_v1(p_reservation text, p_resolution_operation_id text)
returns table (state jsonb, resolution bytea, resolution_event_id uuid)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select l.state, r.document, r.resolution_applied_event_id
    from billing.finalization_fence_lock_v1(array[p_reservation]) as l
    left join billing.resolution_applied as r on r.resolution_operation_id = p_resolution_operation_id;
end $$;
