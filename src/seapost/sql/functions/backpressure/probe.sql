-- Purpose: counts what waits for a destination, at most up to its watermark, and sets its gate: to new credit, or closed.
-- Null means the deliveries are admitted; a number is how many wait, and they are refused. One session counts at a time:
-- the others wait for it and use what it found. New credit is a twentieth of the watermark at most and always ends below
-- it, so counting costs twenty index entries per delivery, whatever the watermark. A closed gate stays so for twenty
-- times what the count took, at least 50 ms and at most 10 s: refusing costs no count.
-- The gate is a sequence: its value is the credit left, or minus (end of the closure in ms since 1970, shifted by 21
-- bits, plus how many waited). No transaction takes a value of a sequence back, which a refusal needs.
-- Locks: an advisory lock on the destination, for this call: the block is a subtransaction that is always rolled back.
-- Errors: none.
create or replace function seapost.backpressure_probe(p_limit seapost.backpressure_limit, p_count int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_step int := greatest(1, p_limit.watermark / 20);
    v_started timestamptz;
    v_value bigint;
    v_waiting int;
    v_admitted boolean := false;
    v_hold_ms bigint;
begin
    begin
        perform pg_advisory_xact_lock(hashtextextended('seapost.backpressure/' || p_limit.destination, 0));
        v_value := pg_sequence_last_value(p_limit.gate);
        if v_value >= p_count then  -- somebody has counted while this session waited
            for v_unit in 1..p_count loop
                v_value := nextval(p_limit.gate);
            end loop;
            v_admitted := v_value >= 0;
        end if;
        if v_admitted then
            null;
        elsif seapost.backpressure_closed_for(v_value) > interval '0' then
            v_waiting := seapost.backpressure_seen(v_value);
        else
            v_started := clock_timestamp();
            select count(*) into v_waiting
            from (select from seapost.delivery_ready as r where r.destination = p_limit.destination limit p_limit.watermark) as c;
            v_admitted := v_waiting <= p_limit.watermark - greatest(v_step, p_count);
            if v_waiting <= p_limit.watermark - v_step then
                perform setval(p_limit.gate,
                    least(v_step, p_limit.watermark - v_waiting - case when v_admitted then p_count else 0 end));
            else
                v_hold_ms := least(10000, greatest(50, 20000 * extract(epoch from clock_timestamp() - v_started)));
                perform setval(p_limit.gate,
                    -((((extract(epoch from seapost.clock_now()) * 1000)::bigint + v_hold_ms) << 21) + v_waiting));
            end if;
        end if;
        raise raise_exception;
    exception when raise_exception then
        null;  -- variables and sequences keep their values, the lock is gone
    end;
    return case when not v_admitted then v_waiting end;
end $$;
