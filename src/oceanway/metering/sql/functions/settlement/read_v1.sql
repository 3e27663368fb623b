-- Purpose: snapshots by reference, each with the conflict under which its dimension stands, in the order asked.
-- Locks: none.
-- Errors: none; an unknown reference gives a row of nulls.
create or replace function metering.settlement_read_v1(p_refs text[])
returns table (document bytea, conflict bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.document, c.document
    from unnest(p_refs) with ordinality as r (ref, position)
    left join metering.settlement_input_snapshot as s on s.settlement_input_snapshot_ref = r.ref
    left join metering.settlement_input_conflict as c
        on c.settlement_dimension_id = s.settlement_dimension_id and c.repaired_at is null
    order by r.position;
$$;
