-- Purpose: the slow half of a proof from scratch: how many events or receipts of a version do not say what their columns say.
-- Every envelope is parsed and compared, every candidate as well; digests are generated columns and cannot differ from the bytes.
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_rehash(p_name text, p_version text, p_key text)
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_wrong bigint;
begin
    select count(*) into v_wrong
    from (select e.event_id, e.event_type, e.schema_version, e.aggregate_kind, e.aggregate_id, e.aggregate_revision, e.digest, e.envelope
          from seapost.event as e
          union all
          select a.event_id, a.event_type, a.schema_version, a.aggregate_kind, a.aggregate_id, a.aggregate_revision, a.digest, a.envelope
          from seapost.accepted_event as a) as s
    cross join lateral (select convert_from(s.envelope, 'UTF8')::jsonb as document) as d
    where sha256(s.envelope) <> s.digest
       or (d.document ->> 'eventId', d.document ->> 'eventType', d.document ->> 'eventSchemaVersion', d.document #>> '{aggregate,kind}',
           d.document #>> '{aggregate,id}', d.document #>> '{aggregate,revision}')
          is distinct from (s.event_id::text, s.event_type, s.schema_version, s.aggregate_kind, s.aggregate_id, s.aggregate_revision::text);
    return v_wrong + (
        select count(*)
        from seapost.inbox_receipt as i
        cross join lateral (select convert_from(i.receipt_candidate, 'UTF8')::jsonb as document) as d
        where i.consumer = p_key
          and (sha256(i.receipt_candidate) <> i.receipt_digest
            or (d.document ->> 'eventId', d.document ->> 'eventEnvelopeSha256', d.document ->> 'projectionName', d.document ->> 'projectionVersion')
               is distinct from (i.event_id::text, encode(i.event_digest, 'hex'), p_name, p_version)));
end $$;
