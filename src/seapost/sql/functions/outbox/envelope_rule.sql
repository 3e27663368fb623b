-- Purpose: names the first rule of the canonical event envelope (REF-01) that a document breaks; null when it keeps all.
-- Locks: none.
-- Errors: none.
create or replace function seapost.outbox_envelope_rule(p_document jsonb)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    c_fields constant text[] := array['eventId', 'eventType', 'eventSchemaVersion', 'producer', 'aggregate', 'tenant',
                                      'correlation', 'occurredAt', 'payload'];
    v_name text;
begin
    if jsonb_typeof(p_document) <> 'object' then
        return 'the document must be an object';
    end if;
    foreach v_name in array c_fields loop
        if not p_document ? v_name then
            return format('field %s is missing', v_name);
        end if;
        if jsonb_typeof(p_document -> v_name) <>
           (case when v_name in ('aggregate', 'tenant', 'correlation', 'payload') then 'object' else 'string' end) then
            return format('field %s has the wrong type', v_name);
        end if;
    end loop;
    select k into v_name from jsonb_object_keys(p_document) as k where k <> all (c_fields) limit 1;
    if v_name is not null then
        return format('field %s is unknown', left(v_name, 80));
    end if;
    if p_document ->> 'eventId' !~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$' then
        return 'field eventId must be a lower-case UUID of version 7';
    end if;
    if p_document ->> 'eventType' !~ '^[a-z][a-z0-9._-]*(@[0-9]+(\.[0-9]+)*)?$' or length(p_document ->> 'eventType') > 200 then
        return 'field eventType must match [a-z][a-z0-9._-]* with an optional @version, at most 200 characters';
    end if;
    if p_document ->> 'eventSchemaVersion' !~ '^[0-9]+(\.[0-9]+)*$' or length(p_document ->> 'eventSchemaVersion') > 32 then
        return 'field eventSchemaVersion must be digits and dots, at most 32 characters';
    end if;
    if p_document ->> 'producer' !~ '^[a-z][a-z0-9_.-]*$' or length(p_document ->> 'producer') > 100 then
        return 'field producer must match [a-z][a-z0-9_.-]*, at most 100 characters';
    end if;
    if not seapost.outbox_is_timestamp(p_document ->> 'occurredAt') then
        return 'field occurredAt must be a UTC time like 2026-01-31T23:59:59.000000Z';
    end if;
    return seapost.outbox_envelope_parts_rule(p_document -> 'aggregate', p_document -> 'tenant', p_document -> 'correlation');
end $$;
