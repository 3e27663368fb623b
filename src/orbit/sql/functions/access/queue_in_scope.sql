-- Purpose: whether a queue, by its id, is in the scope of a credential: all queues, or an explicit set (AUT-13). The
-- queue's namespace is not looked at: ids of a scope belong to the credential's namespace, and so do the rows asked for.
-- Locks: none.
-- Errors: none.
create or replace function orbit.access_queue_in_scope(p_credential orbit.credentials, p_queue_id text)
returns boolean
language sql
immutable
as $$ select p_credential.all_queues or p_queue_id = any(p_credential.queue_ids) $$;
