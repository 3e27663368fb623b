-- Purpose: says which event an owner fact has; the caller writes both ids and appends the event in this transaction
--   (AMB-41, NEG-50).
-- Locks: the primary key of the pair.
-- Errors: OW001 the fact has an event of this type; OW003 the envelope is of another type.
-- Returns: the event's id.
create or replace function billing.event_bind(p_envelope bytea, p_event_type text, p_source_fact_key text)
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
    insert into billing.event_source (event_type, source_fact_key, event_id)
    values (p_event_type, p_source_fact_key, v_event_id)
    on conflict (event_type, source_fact_key) do nothing;
    if not found then
        raise exception using errcode = 'OW001', message = format('the fact has an event of type %s', p_event_type);
    end if;
    return v_event_id;
end $$;
