-- Purpose: requires that an event says what its fact says: the complete economic identity, the revision it made, and the cause
--   (CASE-28, CASE-31), and where a prefix is given the fact's quad.
-- Locks: none.
-- Errors: OW003 it does not.
create or replace function billing.dimension_event_check(p_envelope bytea, p_fact jsonb, p_prefix text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_payload constant jsonb := v_event -> 'payload';
    v_key text;
begin
    foreach v_key in array array['tenantKind', 'tenantId', 'workspaceId', 'projectId', 'billingAccountId',
        'billingReservationId', 'runId', 'runStepId', 'executionAttemptId', 'chargeDimensionKey',
        'settlementEconomicIdentity']
        || case when p_prefix is null then '{}'::text[]
           else array['fromRevision', 'toRevision', 'causationEventId', p_prefix || 'Ref', p_prefix || 'SchemaVersion',
                p_prefix || 'DigestAlgorithmVersion', p_prefix || 'Digest'] end
    loop
        if v_payload -> v_key is distinct from p_fact -> v_key then
            raise exception using errcode = 'OW003', message = format('the event and its fact differ in %s', v_key);
        end if;
    end loop;
    if p_prefix is not null
        and v_event #> '{correlation,causationId}' is distinct from p_fact -> 'causationEventId' then
        raise exception using errcode = 'OW003', message = 'the event names another cause than its fact';
    end if;
end $$;
