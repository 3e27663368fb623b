-- Purpose: in the transaction that applies events, keeps the envelopes of those that this database did not append itself, so
-- that a later version can be built without asking anybody (AMB-39). Known ones stay as they are.
-- Locks: the rows it inserts, in event order.
-- Errors: SP013 argument.
create or replace function seapost.projection_accept_v1(p_event_ids uuid[], p_envelopes bytea[])
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_rows bigint;
begin
    if cardinality(p_event_ids) is distinct from cardinality(p_envelopes) or cardinality(p_event_ids) > 10000 then
        raise exception using errcode = 'SP013', message = 'the arrays of a call must be parallel, with at most 10000 items';
    end if;
    insert into seapost.accepted_event (event_id, accepted_at, aggregate_revision, producer, event_type, schema_version,
        aggregate_kind, aggregate_id, envelope)
    select u.event_id, now(), (d.document #>> '{aggregate,revision}')::bigint, d.document ->> 'producer',
        d.document ->> 'eventType', d.document ->> 'eventSchemaVersion', d.document #>> '{aggregate,kind}',
        d.document #>> '{aggregate,id}', u.envelope
    from unnest(p_event_ids, p_envelopes) as u (event_id, envelope)
    cross join lateral (select convert_from(u.envelope, 'UTF8')::jsonb as document) as d
    where not exists (select from seapost.event as e where e.event_id = u.event_id)
    order by u.event_id
    on conflict (event_id) do nothing;
    get diagnostics v_rows = row_count;
    return v_rows;
end $$;
