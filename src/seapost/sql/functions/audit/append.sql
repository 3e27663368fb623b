-- Purpose: appends an audit record in the caller's transaction (REF-14).
-- Locks: none beyond the row it inserts.
-- Errors: 23514 when the actor is empty.
create or replace function seapost.audit_append(p_actor text, p_action text, p_subject_ref text, p_request_digest bytea)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
    insert into seapost.audit_record (occurred_at, actor, action, subject_ref, request_digest)
    values (seapost.clock_now(), p_actor, p_action, p_subject_ref, p_request_digest)
$$;
