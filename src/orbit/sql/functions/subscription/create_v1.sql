-- Purpose: creates a subscription (TX-10, SUB-25). The lock of the stream row fixes "from now on": no result is being
--   numbered while it is held, so the head read by the next statement is exact (JRN-11, SUB-09). It also makes the
--   creations of a namespace serial, hence the count of SUB-05 and the name are exact too (SUB-21).
-- Locks: idempotency identity, queue row shared, stream row (LCK-03)
-- Errors: OB001..OB004, OB026 a bound, OB015 key of another request, OB005/OB006 queue, OB018 name, OB019 limit,
--   OB021 future sequence, OB022 before the boundary, 23514 no stream row
create or replace function orbit.subscription_create_v1(
    p_token_sha256 bytea, p_name text, p_queue text, p_types text[], p_from_sequence bigint, p_max_pending integer,
    p_max_attempts integer, p_idempotency_key text, p_request_sha256 text
)
returns table (response_status integer, response_json text, replayed boolean, wake_subscription_id text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_credential orbit.credentials := orbit.access_check(p_token_sha256, 'events:manage');
    v_stored record;
    v_queue orbit.queues;
    v_stream record;
    v_new orbit.event_subscriptions;
    v_body text;
begin
    if p_name is null or p_name !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' collate "C" or p_queue is null
        or p_from_sequence < 0 or p_max_pending not between 0 and 1000 or p_max_attempts not between 0 and 100 then
        raise exception using errcode = 'OB026', message = 'name, queue, from_sequence, max_pending or max_attempts is out of range';
    end if;
    v_new.types := orbit.subscription_types_ordered(p_types);
    v_stored := orbit.idempotency_begin(
        v_credential, 'event_subscription.create', 'event-subscriptions', p_idempotency_key, p_request_sha256);
    v_queue := orbit.access_queue_named(v_credential, p_queue);
    if v_stored.response_status is not null then
        return query select v_stored.response_status, v_stored.response_json, true, null::text;
        return;
    end if;

    perform 1 from orbit.queues as q where q.queue_id = v_queue.queue_id for share;
    perform 1 from orbit.event_stream_locks as l where l.namespace_id = v_credential.namespace_id for update;
    if not found then
        raise exception using errcode = '23514',
            message = format('orbit: namespace %s has no stream row', v_credential.namespace_id);
    end if;
    if exists (select from orbit.event_subscriptions as s
               where s.namespace_id = v_credential.namespace_id and s.name = p_name) then
        raise exception using errcode = 'OB018', message = format('the name %s is taken in the namespace', p_name);
    end if;
    if (select count(*) from orbit.event_subscriptions as s where s.namespace_id = v_credential.namespace_id) >= 64 then
        raise exception using errcode = 'OB019', message = 'the namespace has 64 subscriptions';
    end if;
    select s.last_sequence, s.retained_from_sequence into v_stream
    from orbit.event_streams as s where s.namespace_id = v_credential.namespace_id;
    if p_from_sequence > v_stream.last_sequence then
        raise exception using errcode = 'OB021',
            message = format('from_sequence %s is greater than the newest result''s %s', p_from_sequence, v_stream.last_sequence),
            detail = format('{"last_sequence":%s}', v_stream.last_sequence);
    end if;
    if p_from_sequence >= 1 then
        perform orbit.subscription_check_retained(p_from_sequence, v_stream.retained_from_sequence);
    end if;

    v_new.subscription_id := orbit.id_new('sub');
    v_new.namespace_id := v_credential.namespace_id;
    v_new.name := p_name;
    v_new.legacy := false;
    v_new.status := 'ACTIVE';
    v_new.owner_credential_id := v_credential.credential_id;
    v_new.queue_id := v_queue.queue_id;
    -- an explicit 0 means all there is, so after a cleanup it starts at the boundary (MIG-17, A-29)
    v_new.from_sequence := case when p_from_sequence = 0 then v_stream.retained_from_sequence - 1
                                else coalesce(p_from_sequence, v_stream.last_sequence) end;
    v_new.cursor_sequence := v_new.from_sequence;
    v_new.max_pending := coalesce(nullif(p_max_pending, 0), 100);
    v_new.max_attempts := coalesce(nullif(p_max_attempts, 0), 20);
    v_new.pending_count := 0;
    v_new.revision := 1;
    v_new.created_at := clock_timestamp();
    v_new.updated_at := v_new.created_at;
    insert into orbit.event_subscriptions select v_new.*;
    perform orbit.audit_write(v_new.namespace_id, v_credential.credential_id, 'event.subscription.created',
        'event_subscription', v_new.subscription_id,
        (select row_to_json(d) from (select v_new.name, v_new.queue_id, v_new.types, v_new.from_sequence,
            v_new.max_pending, v_new.max_attempts) as d (name, queue_id, types, from_sequence, max_pending, max_attempts)));
    v_body := orbit.subscription_body(v_new);
    perform orbit.idempotency_end(v_stored.identity, 201, v_body);
    return query select 201, v_body, false, null::text;
end $$;
