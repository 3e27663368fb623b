-- Purpose: the current snapshot of dimensions, each with the conflict under which it stands, in the order asked.
-- Locks: none.
-- Errors: none; an unknown dimension gives a row of nulls.
create or replace function metering.settlement_current_v1(p_dimensions text[])
returns table (document bytea, conflict bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.document, c.document
    from unnest(p_dimensions) with ordinality as r (dimension, position)
    left join metering.settlement_pointer as p on p.settlement_dimension_id = r.dimension
    left join metering.settlement_input_snapshot as s using (settlement_input_snapshot_ref)
    left join metering.settlement_input_conflict as c
        on c.settlement_dimension_id = p.settlement_dimension_id and c.repaired_at is null
    order by r.position;
$$;
