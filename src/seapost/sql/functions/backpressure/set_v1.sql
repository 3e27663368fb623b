-- Purpose: decides how many deliveries may wait for a destination before append refuses more (refuse), waits for room up
-- to p_wait_seconds and then refuses (slow), or lets everything in (off, the default). Appends that run now keep to what
-- they have read. Each change is audited; no delivery set and no stored event is touched.
-- Locks: the advisory lock "backpressure" to the end of the transaction; the backpressure_limit row.
-- Errors: SP013 argument, or a destination of no registered delivery set.
create or replace function seapost.backpressure_set_v1(
    p_destination text, p_watermark int, p_action text, p_wait_seconds int, p_actor text
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_gate text;
begin
    if p_actor is null or length(p_actor) not between 1 and 200
       or p_action is null or p_action not in ('refuse', 'slow', 'off')
       or p_watermark is null or p_watermark not between 1 and 1000000
       or p_wait_seconds is null or p_wait_seconds not between 0 and 60 or (p_action = 'slow') <> (p_wait_seconds > 0) then
        raise exception using errcode = 'SP013', message = 'p_watermark must be 1 to 1000000, p_action refuse, slow or off, '
            'p_wait_seconds 1 to 60 for slow and else 0, and p_actor have 1 to 200 characters';
    end if;
    if not exists (select from seapost.delivery_set_member as m where m.destination = p_destination) then
        raise exception using errcode = 'SP013', message = 'p_destination must be in a registered delivery set';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('seapost.backpressure', 0));
    update seapost.backpressure_limit as b
    set watermark = p_watermark, action = p_action, wait_seconds = p_wait_seconds, changed_at = seapost.clock_now()
    where b.destination = p_destination;
    if not found then
        v_gate := 'backpressure_gate_' || (select count(*) + 1 from seapost.backpressure_limit);
        execute format('create sequence seapost.%I as bigint increment by -1 minvalue %s maxvalue %s start with 0',
            v_gate, -9223372036854775807, 9223372036854775807);
        execute format('revoke all on sequence seapost.%I from public', v_gate);
        insert into seapost.backpressure_limit (destination, watermark, action, wait_seconds, gate, changed_at)
        values (p_destination, p_watermark, p_action, p_wait_seconds, ('seapost.' || v_gate)::regclass, seapost.clock_now());
    end if;
    perform setval(b.gate, 0) from seapost.backpressure_limit as b where b.destination = p_destination;  -- the next append counts
    perform seapost.audit_append(p_actor, 'backpressure.set',
        format('%s=%s at %s, wait %s s', p_destination, p_action, p_watermark, p_wait_seconds), null);
end $$;
