-- Purpose: the rare half of append: an envelope that was not inserted must be stored already with the same bytes, or its
-- event is not in the active delivery set.
-- Locks: none.
-- Errors: SP002 other content under a known id, SP003 event not in the active delivery set.
create or replace function seapost.outbox_compare(p_envelopes bytea[], p_definition_id int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_header record;
    v_digest bytea;
begin
    for v_header in select * from seapost.outbox_envelope_headers(p_envelopes) loop
        select e.digest into v_digest from seapost.event as e where e.event_id = v_header.event_id;
        if not found then
            raise exception using errcode = 'SP003',
                message = format('event %s with schema version %s is not in the active delivery set',
                    v_header.event_type, v_header.schema_version),
                detail = format('event %s; active version %s', v_header.event_id, (
                    select v.delivery_set_version from seapost.delivery_set_version as v
                    where v.definition_id = p_definition_id));
        elsif v_digest <> sha256(v_header.envelope) then
            raise exception using errcode = 'SP002',
                message = format('event %s is already stored with other content', v_header.event_id),
                detail = format('stored digest %s, given digest %s', encode(v_digest, 'hex'),
                    encode(sha256(v_header.envelope), 'hex'));
        end if;
    end loop;
end $$;
