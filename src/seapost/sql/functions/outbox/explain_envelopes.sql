-- Purpose: finds the first envelope that is no canonical event envelope and raises with the field and the rule. The slow
-- half of outbox_envelope_headers: it runs only when something is wrong, or for every event at guard level strict.
-- Locks: none.
-- Errors: SP006 invalid envelope.
create or replace function seapost.outbox_explain_envelopes(p_envelopes bytea[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_envelope bytea;
    v_document jsonb;
    v_rule text;
begin
    foreach v_envelope in array p_envelopes loop
        if v_envelope is null then
            raise exception using errcode = 'SP006', message = 'an envelope is null';
        end if;
        begin
            v_document := convert_from(v_envelope, 'UTF8')::jsonb;
        exception when data_exception or untranslatable_character or character_not_in_repertoire then
            raise exception using errcode = 'SP006', message = 'an envelope is not JSON in UTF-8', detail = sqlerrm;
        end;
        v_rule := seapost.outbox_envelope_rule(v_document);
        if v_rule is not null then
            raise exception using errcode = 'SP006', message = 'an envelope breaks a rule: ' || v_rule,
                detail = 'eventId ' || left(coalesce(v_document ->> 'eventId', 'missing'), 80);
        end if;
    end loop;
end $$;
