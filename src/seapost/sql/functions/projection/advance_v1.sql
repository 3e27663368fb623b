-- Purpose: after the mutations of a batch, moves each aggregate from the revision it was met at to the last one applied,
-- resolves the gaps that this filled (OPS-11), and adds to the summary of this version (OPS-07), in the slot of this
-- session, so that batches do not wait for each other's. Returns how many gaps are open now, null when none was resolved.
-- Locks: the projection_aggregate rows, which projection_meet_v1 holds already; their projection_gap rows; one
-- projection_summary row.
-- Errors: SP013 argument; SP011 an aggregate is not at the revision it was met at.
create or replace function seapost.projection_advance_v1(
    p_name text, p_version text, p_producers text[], p_kinds text[], p_ids text[],
    p_from bigint[], p_to bigint[], p_last_event_ids uuid[]
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_has_gaps boolean := seapost.projection_open_gaps(p_name, p_version) > 0;
    v_applied bigint;
    v_rows bigint;
    v_resolved bigint := 0;
begin
    perform seapost.delivery_check_arguments(p_name, p_last_event_ids, cardinality(p_producers), cardinality(p_kinds),
        cardinality(p_ids), cardinality(p_from), cardinality(p_to));
    for v_at in 1 .. cardinality(p_producers) loop  -- row by row: by the key, whatever the table held at planning
        update seapost.projection_aggregate as a
        set revision = p_to[v_at], last_event_id = p_last_event_ids[v_at]
        where a.projection_name = p_name and a.projection_version = p_version and a.producer = p_producers[v_at]
          and a.aggregate_kind = p_kinds[v_at] and a.aggregate_id = p_ids[v_at] and a.revision = p_from[v_at]
          and p_to[v_at] > p_from[v_at];
        if not found then
            raise exception using errcode = 'SP011', message = 'an aggregate is not at the revision it was met at';
        end if;
        if v_has_gaps then
            update seapost.projection_gap as g
            set resolved_at = now()
            where g.projection_name = p_name and g.projection_version = p_version and g.producer = p_producers[v_at]
              and g.aggregate_kind = p_kinds[v_at] and g.aggregate_id = p_ids[v_at]
              and g.expected_revision = p_from[v_at] + 1;  -- the only one that can be open: others were passed, or lie beyond
            get diagnostics v_rows = row_count;
            v_resolved := v_resolved + v_rows;
        end if;
    end loop;
    v_applied := (select sum(u.to_revision - u.from_revision) from unnest(p_from, p_to) as u (from_revision, to_revision));
    insert into seapost.projection_summary as s (projection_name, projection_version, slot, applied_count, last_applied_at)
    values (p_name, p_version, pg_backend_pid() % 64, v_applied, now())
    on conflict (projection_name, projection_version, slot) do update
    set applied_count = s.applied_count + excluded.applied_count,
        last_applied_at = greatest(s.last_applied_at, excluded.last_applied_at);
    return case when v_resolved > 0 then seapost.projection_open_gaps(p_name, p_version) end;
end $$;
