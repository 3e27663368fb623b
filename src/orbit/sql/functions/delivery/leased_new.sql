-- Purpose: what this claim leased of what it materialised, that is between the two positions of the cursor, with the
--   snapshots, numbered from p_first in ascending sequence.
-- Locks: none; the caller holds the subscription row
-- Errors: none
create or replace function orbit.delivery_leased_new(
    p_subscription_id text, p_after bigint, p_upto bigint, p_first integer
)
returns table (
    i integer, delivery_id text, event_id text, event_type text, event_sequence bigint, lease_epoch bigint,
    lease_expires_at timestamptz, attempts integer, attempt_budget integer, snapshot_json text
)
language plpgsql
as $$
#variable_conflict use_column
begin
    return query
        select (p_first - 1 + row_number() over (order by d.event_sequence))::integer, d.delivery_id::text,
            d.event_id::text, e.type::text, d.event_sequence, d.lease_epoch, d.lease_expires_at, d.attempts,
            d.attempt_budget, e.snapshot_json
        from orbit.event_deliveries as d join orbit.result_events as e on e.event_id = d.event_id
        where d.subscription_id = p_subscription_id and d.event_sequence > p_after and d.event_sequence <= p_upto
          and d.lease_epoch = 1
        order by d.event_sequence;
end $$;
