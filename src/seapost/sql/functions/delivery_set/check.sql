-- Purpose: checks a delivery set definition against SET-01..14 and raises with the field and the rule. The database
-- trusts nobody: what Python checks before, it checks again.
-- Locks: none.
-- Errors: SP005.
create or replace function seapost.delivery_set_check(p_document jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_rule text;
begin
    v_rule := case
        when jsonb_typeof(p_document) <> 'object' then 'the document must be an object'
        when p_document - array['deliverySetVersion', 'deliverySetDefinitionSchemaVersion', 'memberCount', 'members',
                'deliverySetDefinitionDigestAlgorithmVersion', 'applicableEventCount', 'applicableEvents'] <> '{}'
            then 'a field is unknown'
        when p_document -> 'deliverySetDefinitionSchemaVersion' is distinct from '"1"'
            then 'deliverySetDefinitionSchemaVersion must be "1"'
        when p_document -> 'deliverySetDefinitionDigestAlgorithmVersion' is distinct from '"jcs-sha256-v1"'
            then 'deliverySetDefinitionDigestAlgorithmVersion must be "jcs-sha256-v1"'
        when jsonb_typeof(p_document -> 'deliverySetVersion') is distinct from 'string'
            or length(p_document ->> 'deliverySetVersion') > 100
            or not seapost.outbox_is_identifier(p_document ->> 'deliverySetVersion')
            then 'deliverySetVersion must be a string of 1 to 100 characters in NFC, without control characters'
        when jsonb_typeof(p_document -> 'applicableEvents') is distinct from 'array' then 'applicableEvents must be an array'
        when jsonb_typeof(p_document -> 'members') is distinct from 'array' then 'members must be an array'
        when jsonb_array_length(p_document -> 'applicableEvents') > 1000
            or jsonb_array_length(p_document -> 'members') > 5000 then 'at most 1000 events and 5000 members'
        when p_document -> 'applicableEventCount' is distinct from to_jsonb(jsonb_array_length(p_document -> 'applicableEvents'))
            then 'applicableEventCount must equal the number of applicableEvents'
        when p_document -> 'memberCount' is distinct from to_jsonb(jsonb_array_length(p_document -> 'members'))
            then 'memberCount must equal the number of members'
    end;
    v_rule := coalesce(v_rule, seapost.delivery_set_items_rule(p_document -> 'applicableEvents', p_document -> 'members'));
    if v_rule is not null then
        raise exception using errcode = 'SP005', message = 'the definition breaks a rule: ' || v_rule;
    end if;
end $$;
