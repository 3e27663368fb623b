-- Purpose: lets deliveries to a destination be appended, or refuses them because too many wait. Each delivery takes one
-- unit of the gate's credit; who finds too little left counts (backpressure_probe). With action slow it first waits for
-- room, for a bounded time and never longer than half of a timeout of the session.
-- Locks: none of its own while it waits; the caller's transaction keeps what it holds.
-- Errors: SP024 back-pressure.
create or replace function seapost.backpressure_admit(p_destination text, p_count int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_limit seapost.backpressure_limit;
    v_value bigint;
    v_closed_for interval;
    v_waiting int;
    v_left interval;
    v_pause interval;
begin
    select b.* into v_limit from seapost.backpressure_limit as b where b.destination = p_destination and b.action <> 'off';
    if not found then
        return;
    end if;
    if p_count > v_limit.watermark then
        raise exception using errcode = 'SP024',
            message = format('one call appends %s deliveries to destination %s, whose watermark is %s',
                p_count, p_destination, v_limit.watermark),
            detail = 'append them in smaller calls';
    end if;
    loop
        v_value := pg_sequence_last_value(v_limit.gate);
        if v_value > 0 then
            for v_unit in 1..p_count loop
                v_value := nextval(v_limit.gate);
            end loop;
            if v_value >= 0 then
                return;
            end if;
        end if;
        v_closed_for := seapost.backpressure_closed_for(v_value);
        if v_closed_for > interval '0' then
            v_waiting := seapost.backpressure_seen(v_value);
        else
            v_waiting := seapost.backpressure_probe(v_limit, p_count);
            if v_waiting is null then
                return;
            end if;
            v_closed_for := seapost.backpressure_closed_for(pg_sequence_last_value(v_limit.gate));
        end if;
        v_left := coalesce(v_left, seapost.backpressure_wait(v_limit.wait_seconds));
        v_pause := least(v_left, greatest(v_closed_for, interval '50 ms'));
        if v_pause <= interval '0' then
            raise exception using errcode = 'SP024',
                message = format('destination %s has %s deliveries waiting, and its watermark is %s',
                    p_destination, v_waiting, v_limit.watermark),
                detail = format('%s refused; the gate is closed for %s ms more', p_count,
                    ceil(extract(epoch from v_closed_for) * 1000));
        end if;
        perform pg_sleep_for(v_pause);
        v_left := v_left - v_pause;
    end loop;
end $$;
