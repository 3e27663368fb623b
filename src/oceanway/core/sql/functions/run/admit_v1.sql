-- Purpose: admits runs, all or none: each with its manifest, its reservation, `run.created@2.0` and `wallet.reserved@2.0`
--   (TX-09). Items are parallel arrays; a run that was admitted before changes nothing and its new envelopes are left out.
-- Locks: runs and reservations in order of the run; the delivery set, shared.
-- Errors: OW001 another admission of the run or the reservation; OW003 documents that do not belong together; what
--   `seapost.outbox_append_v1` raises.
-- Returns: for each item in the order given, what is stored: manifest, both event ids, and whether it is new.
create or replace function core.run_admit_v1(p_manifests bytea[], p_run_events bytea[], p_wallet_events bytea[])
returns table (document bytea, run_created_event_id uuid, wallet_reserved_event_id uuid, is_new boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_item record;
    v_new text[] := '{}';
    v_envelopes bytea[] := '{}';
begin
    if cardinality(p_manifests) <> any (array[cardinality(p_run_events), cardinality(p_wallet_events)]) then
        raise exception using errcode = 'OW003', message = 'each manifest has two events';
    end if;
    for v_item in
        select i.manifest, i.run_event, i.wallet_event, convert_from(i.manifest, 'UTF8')::jsonb ->> 'runId' as run_id
        from unnest(p_manifests, p_run_events, p_wallet_events) as i (manifest, run_event, wallet_event)
        order by 4
    loop
        if core.run_write(v_item.manifest, v_item.run_event, v_item.wallet_event) then
            v_new := v_new || v_item.run_id;
            v_envelopes := v_envelopes || v_item.run_event || v_item.wallet_event;
        end if;
    end loop;
    if cardinality(v_envelopes) > 0 then
        perform seapost.outbox_append_v1(v_envelopes);
    end if;
    return query
    select r.document, r.run_created_event_id, w.wallet_reserved_event_id, r.run_id = any (v_new)
    from unnest(p_manifests) with ordinality as i (manifest, position)
    join core.run as r on r.run_id = convert_from(i.manifest, 'UTF8')::jsonb ->> 'runId'
    join core.wallet_reservation as w using (run_id)
    order by i.position;
end $$;
