-- Purpose: freezes the candidate of a switch in one snapshot: its members, their digest, the receipts it must have, and the
-- border, which are the members without one; and binds a new shadow claim to it (ORD-16, TX-36). What was in flight has ended,
-- and from now on neither version applies anything outside the border. A candidate that is frozen already is answered again.
-- Locks: the cutover row; the advisory locks "projection claim" of both versions, exclusive: call it with a lock_timeout.
-- Errors: SP032 wrong phase; SP033 the version is empty, or lacks more than `p_rest_max` events.
create or replace function seapost.projection_cutover_freeze_v1(p_name text, p_token uuid, p_rest_max int)
returns table (claim_token uuid, rest_count bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_cutover seapost.projection_cutover;
    v_key text;
    v_claim uuid;
    v_found record;
    v_problem text;
begin
    v_cutover := seapost.projection_cutover_hold(p_name, p_token, array['draining_shadow', 'catching_up']);
    perform pg_advisory_xact_lock(k.key) from (
        select unnest(array[seapost.projection_claim_key(p_name, v_cutover.from_version),
            seapost.projection_claim_key(p_name, v_cutover.to_version)]) as key order by 1) as k;
    if v_cutover.phase = 'catching_up' then
        return query select v.claim_token, (select count(*) from seapost.projection_candidate_rest as r where r.projection_name = p_name)
        from seapost.projection_version as v where v.projection_name = p_name and v.projection_version = v_cutover.to_version;
        return;
    end if;
    select v.receipt_key into v_key from seapost.projection_version as v
    where v.projection_name = p_name and v.projection_version = v_cutover.to_version;
    with source as materialized (  -- one statement, one snapshot
        select s.event_id, s.digest from seapost.source_events as s
        join seapost.projection_support as u on u.projection_name = p_name and u.projection_version = v_cutover.to_version
         and u.event_type = s.event_type and u.schema_version = s.schema_version
    ), rest as (
        insert into seapost.projection_candidate_rest (projection_name, event_id, event_digest)
        select p_name, s.event_id, s.digest from source as s
        where not exists (select from seapost.inbox_receipt as i where i.consumer = v_key and i.event_id = s.event_id)
        order by s.event_id limit p_rest_max + 1
        returning event_id
    )
    select count(*) as n, sum(hash_record_extended(row (s.event_id, s.digest), 1)::numeric) as a,
           sum(hash_record_extended(row (s.event_id, s.digest), 2)::numeric) as b, (select count(*) from rest) as rest_count
    into v_found from source as s;
    v_problem := case
        when v_found.rest_count > p_rest_max then format('it lacks more than %s events; let it follow longer', p_rest_max)
        when v_found.n > 0 and v_found.rest_count = v_found.n then 'it is empty' end;
    if v_problem is not null then
        raise exception using errcode = 'SP033', message = 'the version cannot be switched to', detail = v_problem;
    end if;
    v_claim := gen_random_uuid();
    update seapost.projection_version as v set claim_token = v_claim
    where v.projection_name = p_name and v.projection_version = v_cutover.to_version;
    update seapost.projection_cutover as c
    set phase = 'catching_up', phase_at = seapost.clock_now(),
        candidate = seapost.projection_cutover_candidate(v_cutover, v_claim, v_found.n,
            seapost.completeness_set_digest(v_found.n, v_found.a, v_found.b), v_found.rest_count)
    where c.projection_name = p_name;
    return query select v_claim, v_found.rest_count;
end $$;
