-- Purpose: stores events with their deliveries in the caller's own transaction, and never commits it (APP-01..05).
-- Takes canonical envelopes; returns how many were new. An envelope that is stored already, byte for byte, is left alone.
-- The statement that writes the deliveries counts them: the functions are the only writers and rows never change, so a
-- set that is right here stays right.
-- Locks: the transaction-level advisory lock "delivery set", shared, to the end of the caller's transaction, so that an
--   activation waits for appends in flight and none freezes the retired definition (SET-31, REF-04); the rows inserted.
-- Errors: SP001 no active delivery set, SP002 other content under a known id, SP003 event not in the active delivery set,
--   SP006 invalid envelope, SP007 incomplete set, SP013 argument, SP024 back-pressure; 40001 when a
--   REPEATABLE READ caller's snapshot is older than an activation.
create or replace function seapost.outbox_append_v1(p_envelopes bytea[])
returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_active int;
    v_fair boolean;
    v_limited boolean;
    v_moment timestamptz;
    v_read int;
    v_new int;
    v_owing int;
    v_expected int;
    v_destinations text[];
begin
    if p_envelopes is null or array_ndims(p_envelopes) > 1 or cardinality(p_envelopes) > 10000 then
        raise exception using errcode = 'SP013', message = 'p_envelopes must be an array of at most 10000 envelopes';
    end if;
    if pg_advisory_xact_lock_shared(seapost.delivery_set_lock_key()) is null then
        null;  -- never: an expression costs a third of PERFORM, which starts an executor
    end if;
    if cardinality(p_envelopes) = 1 and current_setting('transaction_isolation') = 'read committed' then
        if seapost.outbox_append_one(p_envelopes[1]) then
            return 1;
        end if;
    end if;
    select v.definition_id, exists (select from seapost.destination_setting as f where f.fair_lanes > 1),
           exists (select from seapost.backpressure_limit as b where b.action <> 'off')
    into v_active, v_fair, v_limited
    from seapost.delivery_set_version as v where v.status = 'active';
    if not found then
        raise exception using errcode = 'SP001', message = 'no delivery set is active in this database';
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from seapost.delivery_set_version as v where v.definition_id = v_active for share;
    end if;
    if v_limited then
        perform seapost.backpressure_admit_envelopes(p_envelopes, v_active);
    end if;
    v_moment := seapost.clock_now();  -- not now(): a late commit must not land far below the dispatchers' low-water hint

    with incoming as materialized (
        select * from seapost.outbox_envelope_headers(p_envelopes)),
    appended as (
        insert into seapost.event (event_id, definition_id, mandatory_count, created_at, occurred_at,
            aggregate_revision, event_type, schema_version, aggregate_kind, aggregate_id, envelope)
        select i.event_id, v_active, s.mandatory_count, v_moment, i.occurred_at,
            i.aggregate_revision, i.event_type, i.schema_version, i.aggregate_kind, i.aggregate_id, i.envelope
        from incoming as i
        join seapost.delivery_set_event as s
          on s.definition_id = v_active and s.event_type = i.event_type and s.schema_version = i.schema_version
        order by i.event_id
        on conflict (event_id) do nothing
        returning event_id, event_type, schema_version, mandatory_count, digest,
            case when v_fair then seapost.delivery_tenant_hash(envelope) end as tenant_hash),
    owed as materialized (
        select a.event_id, a.digest, m.destination, m.member_id,
            case when v_fair then (select a.tenant_hash % f.fair_lanes from seapost.destination_setting as f
                                   where f.destination = m.destination) end as lane
        from appended as a
        join seapost.delivery_set_member as m
          on m.definition_id = v_active and m.event_type = a.event_type and m.schema_version = a.schema_version
         and m.mandatory),
    delivered as (
        insert into seapost.delivery (event_id, created_at, member_id, destination)
        select o.event_id, v_moment, o.member_id, o.destination from owed as o),
    waiting as (
        insert into seapost.delivery_ready (event_id, available_at, created_at, member_id, attempt_count,
            failure_count, lost_count, event_digest, destination, lane)
        select o.event_id, v_moment, v_moment, o.member_id, 0, 0, 0, o.digest, o.destination, coalesce(o.lane, 0) from owed as o
        returning destination)
    select (select count(*) from incoming), (select count(*) from appended),
           (select coalesce(sum(mandatory_count), 0) from appended), count(*), array_agg(distinct w.destination)
    into v_read, v_new, v_expected, v_owing, v_destinations
    from waiting as w;

    if v_owing <> v_expected then
        raise exception using errcode = 'SP007',
            message = 'the deliveries of an event are not exactly its mandatory members';
    end if;
    if v_read < cardinality(p_envelopes) then
        perform seapost.outbox_explain_envelopes(p_envelopes);
        raise exception using errcode = 'SP006', message = 'an envelope breaks a rule';
    end if;
    if v_new < v_read then
        perform seapost.outbox_compare(p_envelopes, v_active);
    end if;
    if v_destinations is not null then
        perform seapost.outbox_notify_sleepers(v_destinations);
    end if;
    return v_new;
end $$;
