-- Purpose: stores one step of a chain of decisions, or returns the first one; a step names the digest of the one before
--   and refuses another (CASE-25, REF-41).
-- Locks: an advisory lock on the chain.
-- Errors: OW001 this step exists with other content; OW002 the step before is missing or another than named; OW003 a
--   step out of its place.
-- Returns: the stored document.
create or replace function operations.decision_record_v1(
    p_chain_id text, p_step smallint, p_step_name text, p_object_ref text, p_object_digest text,
    p_predecessor_digest text, p_actor text, p_document bytea
)
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_known operations.decision_step;
begin
    if p_step not between 1 and 8 or (p_step = 1) <> (p_predecessor_digest is null) then
        raise exception using errcode = 'OW003', message = 'only the first step of a chain has none before it';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('operations/decision/' || p_chain_id, 0));
    select * into v_known from operations.decision_step as d where d.chain_id = p_chain_id and d.step = p_step;
    if found then
        if (v_known.step_name, v_known.object_digest, v_known.predecessor_digest, v_known.actor_workforce_principal_id)
            is distinct from (p_step_name, p_object_digest, p_predecessor_digest, p_actor) then
            raise exception using errcode = 'OW001', message = format('the step %s exists with other content', p_step_name);
        end if;
        return v_known.document;
    end if;
    if p_step > 1 then
        perform from operations.decision_step as d
        where d.chain_id = p_chain_id and d.step = p_step - 1 and d.object_digest = p_predecessor_digest;
        if not found then
            raise exception using errcode = 'OW002', message = format('what the step %s builds on is not there', p_step_name);
        end if;
    end if;
    insert into operations.decision_step (chain_id, step, step_name, object_ref, object_digest, predecessor_digest,
        actor_workforce_principal_id, document)
    values (p_chain_id, p_step, p_step_name, p_object_ref, p_object_digest, p_predecessor_digest, p_actor, p_document);
    insert into operations.audit_record (actor, action, subject_ref, request_digest)
    values (p_actor, 'decision.' || p_step_name, p_chain_id, p_object_digest);
    return p_document;
end $$;
