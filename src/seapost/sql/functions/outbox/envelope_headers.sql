-- Purpose: takes the header columns from the envelopes themselves, so that a column can never differ from the bytes, and
-- refuses what is no canonical event envelope (REF-01). The whole envelope is read by name: the field and the rule come
-- from outbox_explain_envelopes.
-- Locks: none.
-- Errors: SP006 invalid envelope.
create or replace function seapost.outbox_envelope_headers(p_envelopes bytea[])
returns table (
    envelope bytea, event_id uuid, event_type text, schema_version text, aggregate_kind text, aggregate_id text,
    aggregate_revision bigint, occurred_at timestamptz
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    begin
        return query
        select u.envelope, h."eventId"::uuid, h."eventType", h."eventSchemaVersion", a.kind, a.id, a.revision,
               h."occurredAt"::timestamptz
        from unnest(p_envelopes) as u (envelope)
        cross join lateral jsonb_to_record(convert_from(u.envelope, 'UTF8')::jsonb) as h (
            "eventId" text, "eventType" text, "eventSchemaVersion" text, "aggregate" jsonb, "occurredAt" text)
        cross join lateral jsonb_to_record(h.aggregate) as a (kind text, id text, revision bigint)
        where h."eventId" ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
          and h."eventType" is not null and h."eventSchemaVersion" is not null
          and a.kind is not null and length(a.id) between 1 and 200 and a.revision between 1 and 9007199254740991
          and h."occurredAt" like '____-__-__T__:__:__.______Z';
    exception when data_exception or untranslatable_character or character_not_in_repertoire then
        perform seapost.outbox_explain_envelopes(p_envelopes);
        raise exception using errcode = 'SP006', message = 'an envelope breaks a rule', detail = sqlerrm;
    end;
end $$;
