-- Purpose: says which event a fact has; the caller appends the envelope in this transaction (AMB-41, NEG-50). The payload
--   must repeat the fields of the fact that are given, so that an event cannot announce another fact.
-- Locks: the primary key of the pair.
-- Errors: OW001 the fact has an event of this type; OW003 the envelope is of another type, or about something else.
-- Returns: the event's id.
create or replace function execution.event_bind(
    p_envelope bytea, p_event_type text, p_source_fact_key text, p_fact jsonb, p_fields text[]
)
returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_event_id constant uuid := (v_event ->> 'eventId')::uuid;
begin
    if v_event ->> 'eventType' is distinct from p_event_type or p_source_fact_key is null then
        raise exception using errcode = 'OW003', message = format('this fact needs an event of type %s', p_event_type);
    end if;
    if exists (
        select from unnest(p_fields) as f (field)
        where v_event -> 'payload' -> f.field is distinct from p_fact -> f.field) then
        raise exception using errcode = 'OW003', message = 'the event does not announce its fact';
    end if;
    insert into execution.event_source (event_type, source_fact_key, event_id, event_envelope_sha256)
    values (p_event_type, p_source_fact_key, v_event_id, encode(sha256(p_envelope), 'hex'))
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'OW001', message = format('the fact has an event of type %s', p_event_type);
    end if;
    return v_event_id;
end $$;
