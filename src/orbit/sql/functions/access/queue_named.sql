-- Purpose: the queue of the credential's namespace with this name, under the rule of SUB-25: a credential for all queues
-- learns that a name is unknown; one with an explicit set hears the same for every name outside it, existing or not.
-- Locks: none.
-- Errors: OB005 outside the scope, OB006 no such queue.
create or replace function orbit.access_queue_named(p_credential orbit.credentials, p_queue text)
returns orbit.queues
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_queue orbit.queues;
begin
    select q.* into v_queue from orbit.queues as q where q.namespace_id = p_credential.namespace_id and q.name = p_queue;
    if not p_credential.all_queues and (not found or v_queue.queue_id <> all (p_credential.queue_ids)) then
        raise exception using errcode = 'OB005', message = 'the queue is outside the scope of the credential';
    end if;
    if v_queue.queue_id is null then
        raise exception using errcode = 'OB006', message = 'there is no queue of this name';
    end if;
    return v_queue;
end $$;
