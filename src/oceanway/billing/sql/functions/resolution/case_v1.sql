-- Purpose: the event that requested a case, which is the cause of its resolution.
-- Locks: none.
-- Errors: none; null for an unknown case.
create or replace function billing.resolution_case_v1(p_case_ref text)
returns uuid
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select c.case_requested_event_id from billing.reconciliation as c where c.reconciliation_case_ref = p_case_ref
$$;
