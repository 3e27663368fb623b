-- Purpose: in the consumer's transaction, passes the gate of the version, then locks or creates the aggregates of a batch and
-- answers how far each was applied (OPS-03, OPS-04, ORD-02): `place` counts the arguments from 1, revision 0 means never. What
-- was decided about them is written by projection_advance_v1 and projection_wait_v1 before the same commit.
-- Locks: those of projection_enter; the projection_aggregate rows of the batch, new ones first, each in the order of their key.
-- Errors: SP013 argument; those of projection_enter.
create or replace function seapost.projection_meet_v2(
    p_name text, p_version text, p_token uuid, p_event_ids uuid[], p_producers text[], p_kinds text[], p_ids text[]
)
returns table (place bigint, revision bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    if cardinality(p_producers) is distinct from cardinality(p_kinds)
       or cardinality(p_producers) is distinct from cardinality(p_ids)
       or cardinality(p_producers) > 10000 or cardinality(p_event_ids) > 10000 then
        raise exception using errcode = 'SP013', message = 'the arrays of a call must be parallel, with at most 10000 items';
    end if;
    perform seapost.projection_enter(p_name, p_version, p_token, p_event_ids);
    insert into seapost.projection_aggregate (projection_name, projection_version, producer, aggregate_kind, aggregate_id, revision)
    select p_name, p_version, g.producer, g.kind, g.id, 0
    from (select distinct u.producer collate "C" as producer, u.kind collate "C" as kind, u.id collate "C" as id
          from unnest(p_producers, p_kinds, p_ids) as u (producer, kind, id) order by 1, 2, 3) as g
    on conflict do nothing;
    return query
    select u.place, a.revision
    from (select g.* from unnest(p_producers, p_kinds, p_ids) with ordinality as g (producer, kind, id, place)
          order by g.producer collate "C", g.kind collate "C", g.id collate "C") as u
    cross join lateral (  -- limit: keeps one probe per aggregate, where a join planned on an empty table would read it whole
        select t.revision from seapost.projection_aggregate as t
        where t.projection_name = p_name and t.projection_version = p_version and t.producer = u.producer
          and t.aggregate_kind = u.kind and t.aggregate_id = u.id
        limit 1 for update) as a;
end $$;
