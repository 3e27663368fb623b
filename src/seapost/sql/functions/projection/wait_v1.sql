-- Purpose: records the revisions that came before the one their aggregate expects (OPS-11, AMB-17). A gap stays until the
-- expected revision was applied; what came too early is delivered again, and each expected revision has one row. Returns
-- how many gaps are open now.
-- Locks: the projection_gap rows, in the order of their key; their aggregates are locked already.
-- Errors: SP013 argument; 23514 when a revision is not beyond the expected one.
create or replace function seapost.projection_wait_v1(
    p_name text, p_version text, p_producers text[], p_kinds text[], p_ids text[], p_expected bigint[], p_seen bigint[]
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if cardinality(p_producers) > 10000 or exists (
        select from unnest(array[cardinality(p_kinds), cardinality(p_ids), cardinality(p_expected), cardinality(p_seen)]) as l (n)
        where l.n is distinct from cardinality(p_producers)) then
        raise exception using errcode = 'SP013', message = 'the arrays of a call must be parallel, with at most 10000 items';
    end if;
    insert into seapost.projection_gap as g (projection_name, projection_version, producer, aggregate_kind, aggregate_id,
        expected_revision, seen_revision, first_seen_at)
    select p_name, p_version, u.producer, u.kind, u.id, u.expected, max(u.seen), now()
    from unnest(p_producers, p_kinds, p_ids, p_expected, p_seen) as u (producer, kind, id, expected, seen)
    group by u.producer, u.kind, u.id, u.expected
    order by u.producer collate "C", u.kind collate "C", u.id collate "C", u.expected
    on conflict (projection_name, projection_version, producer, aggregate_kind, aggregate_id, expected_revision) do update
    set seen_revision = excluded.seen_revision
    where g.seen_revision < excluded.seen_revision;
    return seapost.projection_open_gaps(p_name, p_version);
end $$;
