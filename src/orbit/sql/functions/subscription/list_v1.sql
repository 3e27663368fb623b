-- Purpose: the subscriptions that the credential owns, in queues of its scope (API-09), after a position, oldest first
--   (API-08). Filters are null or exact; a queue that does not exist has no subscriptions.
-- Locks: none
-- Errors: OB001..OB004
create or replace function orbit.subscription_list_v1(
    p_token_sha256 bytea, p_status text, p_queue text, p_limit integer, p_after_created_at timestamptz, p_after_id text
)
returns table (created_at timestamptz, subscription_id text, body text)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_credential orbit.credentials := orbit.access_check(p_token_sha256, 'events:read');
begin
    return query
        select s.created_at, s.subscription_id::text, orbit.subscription_body(s)
        from orbit.event_subscriptions as s
        where s.namespace_id = v_credential.namespace_id and s.owner_credential_id = v_credential.credential_id
            and orbit.access_queue_in_scope(v_credential, s.queue_id)
            and (p_after_created_at is null or (s.created_at, s.subscription_id) > (p_after_created_at, p_after_id))
            and (p_status is null or s.status = p_status)
            and (p_queue is null or s.queue_id = (
                select q.queue_id from orbit.queues as q
                where q.namespace_id = v_credential.namespace_id and q.name = p_queue))
        order by s.created_at, s.subscription_id
        limit p_limit;
end $$;
