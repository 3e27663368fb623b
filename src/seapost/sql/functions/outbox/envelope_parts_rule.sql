-- Purpose: the rules of the three objects inside an envelope: aggregate, tenant and correlation (REF-01, REF-12).
-- Locks: none.
-- Errors: none.
create or replace function seapost.outbox_envelope_parts_rule(p_aggregate jsonb, p_tenant jsonb, p_correlation jsonb)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_part record;
    v_name text;
begin
    for v_part in
        select * from (values
            ('aggregate', p_aggregate, array['kind', 'id', 'revision'], array[]::text[]),
            ('tenant', p_tenant, array['tenantKind', 'tenantId', 'workspaceId'], array['projectId']),
            ('correlation', p_correlation, array['correlationId'], array['causationId', 'operationId', 'traceparent'])
        ) as p (name, value, needed, optional)
    loop
        foreach v_name in array v_part.needed loop
            if not v_part.value ? v_name then
                return format('field %s.%s is missing', v_part.name, v_name);
            end if;
        end loop;
        for v_name in select k from jsonb_object_keys(v_part.value) as k loop
            if v_name <> all (v_part.needed || v_part.optional) then
                return format('field %s.%s is unknown', v_part.name, left(v_name, 80));
            end if;
            if (v_part.name, v_name) = ('aggregate', 'revision') then
                if jsonb_typeof(v_part.value -> v_name) <> 'number' or v_part.value ->> v_name !~ '^[1-9][0-9]{0,15}$'
                   or (v_part.value ->> v_name)::bigint > 9007199254740991 then
                    return 'field aggregate.revision must be an integer from 1 to 9007199254740991';
                end if;
            elsif jsonb_typeof(v_part.value -> v_name) <> 'string' then
                return format('field %s.%s must be a string', v_part.name, v_name);
            elsif not seapost.outbox_is_identifier(v_part.value ->> v_name) then
                return format('field %s.%s must be 1 to 200 characters in NFC, without outer white space, control or format '
                    'characters', v_part.name, v_name);
            end if;
        end loop;
    end loop;
    if p_aggregate ->> 'kind' !~ '^[a-z][a-z0-9_.-]*$' then
        return 'field aggregate.kind must match [a-z][a-z0-9_.-]*';
    end if;
    if p_tenant ->> 'tenantKind' not in ('organization', 'user') then
        return 'field tenant.tenantKind must be organization or user';
    end if;
    if p_correlation ->> 'traceparent' !~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$' then
        return 'field correlation.traceparent must have the form of W3C Trace Context';
    end if;
    return null;
end $$;
