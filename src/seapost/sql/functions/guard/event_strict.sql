-- Purpose: at guard level strict, checks every stored event in full: canonical bytes, every rule of the envelope, and one
-- event per revision of an aggregate. The lean level leaves this to the appending library and to the receiver.
-- Locks: the aggregate_revision row it inserts.
-- Errors: SP002 another event has this aggregate revision, SP006 invalid envelope.
create or replace function seapost.guard_event_strict()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_document jsonb := convert_from(new.envelope, 'UTF8')::jsonb;
begin
    perform seapost.outbox_explain_envelopes(array[new.envelope]);
    if seapost.canonical_json_v1(v_document) <> new.envelope then
        raise exception using errcode = 'SP006', message = 'an envelope is not in canonical form (RFC 8785)',
            detail = 'eventId ' || new.event_id;
    end if;
    insert into seapost.aggregate_revision (producer, aggregate_kind, aggregate_id, aggregate_revision, event_id)
    values (v_document ->> 'producer', new.aggregate_kind, new.aggregate_id, new.aggregate_revision, new.event_id)
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'SP002',
            message = format('revision %s of aggregate %s is already stored as another event', new.aggregate_revision, new.aggregate_id),
            detail = 'eventId ' || new.event_id;
    end if;
    return null;
end $$;
