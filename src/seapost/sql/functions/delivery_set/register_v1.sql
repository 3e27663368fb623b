-- Purpose: registers a delivery set definition: insert, or compare with the one stored under this version (SET-17).
-- Takes the canonical bytes that the digest covers and reads everything from them, so the rows cannot differ from what
-- the digest says. Returns the definition's short name in this database.
-- Locks: the advisory lock "delivery set register" to the end of the transaction.
-- Errors: SP004 this version with other content, SP005 the definition breaks a rule of SET-01..14, SP013 argument.
create or replace function seapost.delivery_set_register_v1(p_candidate bytea, p_source_release text, p_actor text)
returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_document jsonb;
    v_stored seapost.delivery_set_version;
    v_definition_id int;
begin
    if p_actor is null or length(p_actor) not between 1 and 200 or p_source_release is null or length(p_source_release) > 200 then
        raise exception using errcode = 'SP013', message = 'p_actor must have 1 to 200 characters, p_source_release at most 200';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('seapost.delivery_set.register', 0));
    begin
        v_document := convert_from(p_candidate, 'UTF8')::jsonb;
    exception when data_exception or untranslatable_character or character_not_in_repertoire then
        raise exception using errcode = 'SP005', message = 'the definition is not JSON in UTF-8', detail = sqlerrm;
    end;
    perform seapost.delivery_set_check(v_document);
    if seapost.canonical_json_v1(v_document) <> p_candidate then
        raise exception using errcode = 'SP005', message = 'the definition is not in canonical form (RFC 8785)';
    end if;
    select v.* into v_stored from seapost.delivery_set_version as v
    where v.delivery_set_version = v_document ->> 'deliverySetVersion';
    if found then
        if v_stored.candidate <> p_candidate then
            raise exception using errcode = 'SP004',
                message = format('delivery set version %s is registered with another definition', v_stored.delivery_set_version),
                detail = format('stored digest %s, given digest %s', encode(v_stored.definition_digest, 'hex'),
                    encode(sha256(p_candidate), 'hex'));
        end if;
        return v_stored.definition_id;
    end if;
    insert into seapost.delivery_set_version (delivery_set_version, definition_schema_version, digest_algorithm_version,
        registered_at, source_release, candidate)
    values (v_document ->> 'deliverySetVersion', v_document ->> 'deliverySetDefinitionSchemaVersion',
        v_document ->> 'deliverySetDefinitionDigestAlgorithmVersion', seapost.clock_now(), p_source_release, p_candidate)
    returning definition_id into v_definition_id;
    insert into seapost.delivery_set_event (definition_id, event_type, schema_version, mandatory_count)
    select v_definition_id, e ->> 'eventType', e ->> 'eventSchemaVersion', (
        select count(*) from jsonb_array_elements(v_document -> 'members') as m
        where m ->> 'eventType' = e ->> 'eventType' and m ->> 'eventSchemaVersion' = e ->> 'eventSchemaVersion'
          and (m ->> 'mandatory')::boolean)
    from jsonb_array_elements(v_document -> 'applicableEvents') as e;
    insert into seapost.delivery_set_member (definition_id, event_type, schema_version, destination, consumer_name,
        mandatory, expected_receipt_type, expected_receipt_schema_version, projection_name, projection_version, siblings)
    select v_definition_id, m ->> 'eventType', m ->> 'eventSchemaVersion', m ->> 'destination', m ->> 'consumerName',
        (m ->> 'mandatory')::boolean, m ->> 'expectedReceiptType', m ->> 'expectedReceiptSchemaVersion',
        m #>> '{projectionTarget,projectionName}', m #>> '{projectionTarget,projectionVersion}', s.mandatory_count
    from jsonb_array_elements(v_document -> 'members') as m
    join seapost.delivery_set_event as s
      on s.definition_id = v_definition_id and s.event_type = m ->> 'eventType'
     and s.schema_version = m ->> 'eventSchemaVersion';
    perform seapost.audit_append(p_actor, 'delivery_set.register', v_document ->> 'deliverySetVersion', sha256(p_candidate));
    return v_definition_id;
end $$;
