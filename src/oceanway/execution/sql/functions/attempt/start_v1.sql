-- Purpose: records that attempts were handed to their gateway; from now on they can only end as bound. Again: no change.
-- Locks: the attempts in order, as the end of an attempt does.
-- Errors: OW003 an attempt without a gateway; OW004 no such attempt; OW005 it ended already.
-- Returns: how many are new.
create or replace function execution.attempt_start_v1(p_attempts text[])
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_attempt_id text;
    v_bound boolean;
    v_new integer := 0;
begin
    for v_attempt_id in select i.attempt_id from unnest(p_attempts) as i (attempt_id) order by 1 loop
        select a.gateway_bound into v_bound
        from execution.attempt as a where a.execution_attempt_id = v_attempt_id for no key update;
        if not found then
            raise exception using errcode = 'OW004', message = 'there is no such attempt';
        elsif not v_bound then
            raise exception using errcode = 'OW003', message = 'an attempt without a gateway is never started';
        end if;
        insert into execution.attempt_start (execution_attempt_id) values (v_attempt_id) on conflict do nothing;
        if found then
            v_new := v_new + 1;
            perform from execution.eligibility_fact as f where f.execution_attempt_id = v_attempt_id;
            if found then
                raise exception using errcode = 'OW005', message = 'the attempt ended without being dispatched';
            end if;
        end if;
    end loop;
    return v_new;
end $$;
