-- Purpose: the ordinary case of append, one good new event, without the start-up of a statement that writes four tables
-- for any number of rows: scalars, three plain inserts. It does the same as outbox_append_v1 does for an array of one.
-- False means "nothing was written, and something is out of the ordinary" (a broken rule, a replay, an unknown event,
-- guard level strict): then the general statement decides, so that no error has two places.
-- Locks: the rows inserted; the caller holds the lock "delivery set".
-- Errors: SP007 incomplete set, SP024 back-pressure; whatever a guard of the tables raises.
create or replace function seapost.outbox_append_one(p_envelope bytea)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_document jsonb;
    v_aggregate jsonb;
    v_text text;
    v_event_type text;
    v_schema_version text;
    v_event_id uuid;
    v_revision bigint;
    v_occurred_at timestamptz;
    v_definition_id int;
    v_mandatory_count smallint;
    v_fair boolean;
    v_limited boolean;
    v_members int[];
    v_destinations text[];
    v_lanes int[];
    v_moment timestamptz;
    v_tenant_hash int;
    v_digest bytea;
    v_owing int;
begin
    begin
        v_document := convert_from(p_envelope, 'UTF8')::jsonb;
        v_aggregate := v_document -> 'aggregate';
        v_event_type := v_document ->> 'eventType';
        v_schema_version := v_document ->> 'eventSchemaVersion';
        v_text := v_document ->> 'eventId';
        v_event_id := v_text;
        v_revision := v_aggregate ->> 'revision';
        v_occurred_at := v_document ->> 'occurredAt';
        -- The spelling of a UUID of version 7, as outbox_envelope_headers asks for it by a pattern that costs ten times more.
        if not coalesce(v_event_id::text = v_text and substr(v_text, 15, 1) = '7' and substr(v_text, 20, 1) in ('8', '9', 'a', 'b')
            and v_document ->> 'occurredAt' like '____-__-__T__:__:__.______Z' and v_aggregate ->> 'kind' is not null
            and length(v_aggregate ->> 'id') between 1 and 200 and v_revision between 1 and 9007199254740991, false) then
            return false;
        end if;
    exception when data_exception or untranslatable_character or character_not_in_repertoire then
        return false;
    end;

    select v.definition_id, s.mandatory_count, exists (select from seapost.destination_setting as f where f.fair_lanes > 1),
           exists (select from seapost.backpressure_limit as b where b.action <> 'off')
    into v_definition_id, v_mandatory_count, v_fair, v_limited
    from seapost.delivery_set_version as v
    join seapost.delivery_set_event as s on s.definition_id = v.definition_id
     and s.event_type = v_event_type and s.schema_version = v_schema_version
    where v.status = 'active'  -- at strict, a caller's immediate constraints must meet event and deliveries in one statement
      and not exists (select from seapost.guard_level as g where g.level = 'strict');
    if not found then
        return false;
    end if;
    select array_agg(m.member_id), array_agg(m.destination) into v_members, v_destinations
    from seapost.delivery_set_member as m
    where m.definition_id = v_definition_id and m.event_type = v_event_type
      and m.schema_version = v_schema_version and m.mandatory;
    if v_limited then
        foreach v_text in array coalesce(v_destinations, '{}') loop
            perform seapost.backpressure_admit(v_text, 1);
        end loop;
    end if;

    v_moment := seapost.clock_now();  -- not now(): see outbox_append_v1
    insert into seapost.event (event_id, definition_id, mandatory_count, created_at, occurred_at, aggregate_revision,
        event_type, schema_version, aggregate_kind, aggregate_id, envelope)
    values (v_event_id, v_definition_id, v_mandatory_count, v_moment, v_occurred_at, v_revision, v_event_type,
        v_schema_version, v_aggregate ->> 'kind', v_aggregate ->> 'id', p_envelope)
    on conflict do nothing  -- the key is all that can conflict; naming it costs a look at the catalogue for each row
    returning digest into v_digest;
    if not found then
        return false;
    end if;
    insert into seapost.delivery (event_id, created_at, member_id, destination)
    select v_event_id, v_moment, o.member_id, o.destination from unnest(v_members, v_destinations) as o (member_id, destination);
    if v_fair then
        v_tenant_hash := seapost.delivery_tenant_hash(p_envelope);
        select array_agg(v_tenant_hash % f.fair_lanes order by o.n) into v_lanes
        from unnest(v_destinations) with ordinality as o (destination, n)
        left join seapost.destination_setting as f on f.destination = o.destination;
    end if;
    insert into seapost.delivery_ready (event_id, available_at, created_at, member_id, attempt_count,
        failure_count, lost_count, event_digest, destination, lane)
    select v_event_id, v_moment, v_moment, o.member_id, 0, 0, 0, v_digest, o.destination, coalesce(o.lane, 0)
    from unnest(v_members, v_destinations, v_lanes) as o (member_id, destination, lane);
    get diagnostics v_owing = row_count;
    if v_owing <> v_mandatory_count then
        raise exception using errcode = 'SP007',
            message = 'the deliveries of an event are not exactly its mandatory members';
    end if;
    if v_owing > 0 and seapost.outbox_notify_sleepers(v_destinations) is null then
        null;  -- never: an expression costs a third of PERFORM, which starts an executor
    end if;
    return true;
end $$;
