-- Purpose: the deliveries of a subscription in given states (null: all), after a sequence, ascending (API-08). Without
--   `ACKED` at most the window is read, each state by its own partial index, for which the state must stand in the text
--   (GEN-11); with it the list index is walked, and the filter removes at most the window.
-- Locks: none
-- Errors: OB001..OB004, OB016, OB005, OB017
create or replace function orbit.delivery_list_v1(
    p_token_sha256 bytea, p_subscription_id text, p_states text[], p_limit integer, p_after_sequence bigint
)
returns table (event_sequence bigint, body text)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_after constant bigint := coalesce(p_after_sequence, -1);
begin
    perform orbit.subscription_read(orbit.access_check(p_token_sha256, 'events:read'), p_subscription_id);
    if p_states is null or 'ACKED' = any (p_states) then
        return query
            select d.event_sequence, orbit.delivery_body(d) from orbit.event_deliveries as d
            where d.subscription_id = p_subscription_id and d.event_sequence > v_after
              and (p_states is null or d.state = any (p_states))
            order by d.event_sequence limit p_limit;
        return;
    end if;
    return query
        with page as materialized (
            (select d from orbit.event_deliveries as d
             where 'PENDING' = any (p_states) and d.subscription_id = p_subscription_id and d.state = 'PENDING'
               and d.event_sequence > v_after order by d.event_sequence limit p_limit)
            union all
            (select d from orbit.event_deliveries as d
             where 'LEASED' = any (p_states) and d.subscription_id = p_subscription_id and d.state = 'LEASED'
               and d.event_sequence > v_after)
            union all
            (select d from orbit.event_deliveries as d
             where 'EXPIRED' = any (p_states) and d.subscription_id = p_subscription_id and d.state = 'EXPIRED'
               and d.event_sequence > v_after order by d.event_sequence limit p_limit)),
        first as materialized (select p.d from page as p order by (p.d).event_sequence limit p_limit)
        select (f.d).event_sequence, orbit.delivery_body(f.d) from first as f order by 1;
end $$;
