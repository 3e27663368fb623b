-- Purpose: whether the producer of reconciliation cases is enabled, and by which parts of the command chain (REF-43).
-- Locks: none.
-- Errors: none.
create or replace function billing.reconciliation_gate_v1()
returns table (enabled boolean, command_chain text[])
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select g.finalization_reconciliation_producer_enabled, g.command_chain from billing.reconciliation_gate as g
$$;
