-- Purpose: ends the open conflict of a dimension: from now on its snapshots are answered again. True if there was one.
-- Locks: the conflict row.
-- Errors: none.
create or replace function metering.settlement_repair_v1(p_dimension text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update metering.settlement_input_conflict as c set repaired_at = clock_timestamp()
    where c.settlement_dimension_id = p_dimension and c.repaired_at is null;
    return found;
end $$;
