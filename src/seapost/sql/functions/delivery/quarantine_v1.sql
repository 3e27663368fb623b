-- Purpose: finishes attempts as non_retryable and puts their deliveries into quarantine, in sight and for good (DLV-05,
-- DLV-13, STO-16). Returns only what was refused.
-- Locks: the delivery_lease rows in event order.
-- Errors: SP011 a lease moved twice, SP013 argument, 23505 a delivery stands twice in the call, 23514 a reference is not
--   [A-Za-z0-9_-]{1,64}; all roll the whole call back.
create or replace function seapost.delivery_quarantine_v1(
    p_destination text, p_event_ids uuid[], p_attempt_ids bigint[], p_tokens uuid[], p_codes text[], p_refs text[]
)
returns table (event_id uuid, attempt_id bigint, result text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_moment timestamptz := seapost.clock_now();
    v_done bigint[];
    v_held int;
begin
    perform seapost.delivery_check_arguments(p_destination, p_event_ids, cardinality(p_attempt_ids),
        cardinality(p_tokens), cardinality(p_codes), cardinality(p_refs));
    if exists (select from unnest(p_codes) as c (code) where code is null or code not in (
            'schema_unknown', 'schema_invalid', 'digest_conflict', 'envelope_invariant_broken', 'identity_conflict',
            'version_unsupported', 'policy_max_attempts')) then
        raise exception using errcode = 'SP013', message = 'p_codes must be non-retryable error codes';
    end if;
    with given as materialized (
        select * from unnest(p_event_ids, p_attempt_ids, p_tokens, p_codes, p_refs)
            as g (event_id, attempt_id, token, code, ref) order by event_id),
    held as materialized (
        select g.event_id, g.attempt_id, g.code, g.ref, l.event_digest
        from given as g
        cross join lateral (
            select l.event_digest from seapost.delivery_lease as l
            where l.event_id = g.event_id and l.destination = p_destination
              and l.attempt_id = g.attempt_id and l.token = g.token
            for update) as l),
    moved as (
        delete from seapost.delivery_lease as l
        where l.event_id = any (array(select h.event_id from held as h)) and l.destination = p_destination
        returning l.attempt_id),
    finished as (
        insert into seapost.delivery_attempt_finish (event_id, attempt_id, finished_at, outcome, error_code, error_ref)
        select h.event_id, h.attempt_id, v_moment, 3, h.code, h.ref from held as h),
    isolated as (
        insert into seapost.delivery_quarantine (event_id, attempt_id, quarantined_at, destination, reason, error_ref, event_digest)
        select h.event_id, h.attempt_id, v_moment, p_destination, h.code, h.ref, h.event_digest from held as h)
    select array_agg(m.attempt_id), (select count(*) from held) into v_done, v_held from moved as m;
    if coalesce(cardinality(v_done), 0) <> v_held then
        raise exception using errcode = 'SP011', message = 'a lease moved twice', detail = 'destination ' || p_destination;
    end if;
    if v_held < cardinality(p_event_ids) then
        return query select * from seapost.delivery_refused(p_destination, p_event_ids, p_attempt_ids, p_tokens, v_done);
    end if;
end $$;
