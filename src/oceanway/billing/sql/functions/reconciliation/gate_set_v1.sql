-- Purpose: enables the producer of reconciliation cases together with the whole command chain, or disables it (CASE-24,
--   CASE-25, REF-43). A case that is open keeps its way out: the commands are not gated.
-- Locks: the gate.
-- Errors: OW006 a part of the command chain is missing.
create or replace function billing.reconciliation_gate_set_v1(p_enabled boolean, p_command_chain text[], p_actor text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_enabled and not coalesce(p_command_chain @> array['request', 'preview', 'approval', 'jit', 'candidate',
            'decision', 'grant', 'decision_store', 'command_handler'], false) then
        raise exception using errcode = 'OW006', message = 'the producer is enabled only with the whole command chain';
    end if;
    update billing.reconciliation_gate as g
    set finalization_reconciliation_producer_enabled = p_enabled, changed_at = clock_timestamp(),
        command_chain = coalesce((
            select array_agg(distinct c.part order by c.part) from unnest(p_command_chain) as c (part)), '{}');
    insert into billing.audit_record (actor, action, subject_ref, object_digest)
    values (p_actor, case when p_enabled then 'gate.opened' else 'gate.closed' end,
        'finalization_reconciliation_producer_enabled',
        encode(sha256(convert_to(array_to_string(p_command_chain, ','), 'UTF8')), 'hex'));
end $$;
