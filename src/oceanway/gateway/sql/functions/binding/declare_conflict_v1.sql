-- Purpose: records that the gateway's own claims about the route of an attempt exclude each other; until the repair its
--   reads answer `conflicting` (REF-24). The same fact again, while it is open, changes nothing.
-- Locks: the binding.
-- Errors: OW001 another conflict of the binding is open, or this one was repaired; OW004 the attempt is not bound.
create or replace function gateway.binding_declare_conflict_v1(p_document bytea)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_document, 'UTF8')::jsonb;
begin
    perform from gateway.route_binding as b
    where (b.execution_attempt_id, b.gateway_deployment_id)
        = (v_fact ->> 'executionAttemptId', v_fact ->> 'gatewayDeploymentId')
    for no key update;
    if not found then
        raise exception using errcode = 'OW004', message = 'the attempt is not bound to the deployment';
    end if;
    insert into gateway.binding_conflict (gateway_binding_conflict_fact_ref, execution_attempt_id, gateway_deployment_id,
        digest, document)
    values (v_fact ->> 'gatewayBindingConflictFactRef', v_fact ->> 'executionAttemptId',
        v_fact ->> 'gatewayDeploymentId', v_fact ->> 'gatewayBindingConflictFactDigest', p_document)
    on conflict do nothing;
    if not found and not exists (
        select from gateway.binding_conflict as c
        where c.gateway_binding_conflict_fact_ref = v_fact ->> 'gatewayBindingConflictFactRef'
          and c.digest = v_fact ->> 'gatewayBindingConflictFactDigest' and c.repaired_at is null) then
        raise exception using errcode = 'OW001', message = 'another conflict of the binding is open, or this one was repaired';
    end if;
end $$;
