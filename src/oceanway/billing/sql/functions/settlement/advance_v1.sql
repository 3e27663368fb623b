-- Purpose: the one transaction of a settlement input event (TX-28): the watermark, and what makes it durable. `p_input` is the
--   event's payload; `p_mode` says what follows:
--   unbound: the watermark alone, there is no reservation yet (CAT-07); held: the watermark alone, the finalization is in a
--   case (CAT-04); finalization: the next generation of the finalization (CAT-03); catch_up: the next generation of the
--   dimension's catch-up (CAT-05). An input that is the watermark already is not moved again (AMB-07).
-- Locks: what settlement_lock_v1 holds.
-- Errors: OW001 the watermark is another input of this state version; OW002 the watermark, a revision or the phase has moved
--   on; OW003 an unknown mode; those of finalization_fence_schedule_v1 and catch_up_schedule.
-- Returns: the inbox revision.
create or replace function billing.settlement_advance_v1(
    p_input jsonb, p_expected_inbox_revision bigint, p_mode text, p_expected_revision bigint,
    p_trigger bytea, p_work bytea, p_superseded bytea
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_dimension constant text := p_input #>> '{settlementEconomicIdentity,settlementDimensionId}';
    v_reservation constant text := p_input ->> 'billingReservationId';
    v_phase text;
    v_revision bigint;
begin
    select case when f.state = 'finalized' then 'catch_up'
                when f.state = 'reconciliation_required' then 'held' else 'finalization' end
    into v_phase from billing.finalization_fence as f where f.billing_reservation_id = v_reservation for no key update;
    if p_mode is null or p_mode not in ('unbound', 'held', 'finalization', 'catch_up') then
        raise exception using errcode = 'OW003', message = 'a settlement input is unbound, held, or of a known phase';
    elsif p_mode <> coalesce(v_phase, 'unbound') then
        raise exception using errcode = 'OW002', message = 'the finalization is in another phase';
    end if;
    v_revision := billing.settlement_move(v_dimension, p_input, p_expected_inbox_revision);
    if p_mode = 'finalization' then
        insert into billing.catch_up_fence (settlement_dimension_id, billing_reservation_id)
        values (v_dimension, v_reservation)
        on conflict (settlement_dimension_id) do nothing;
        perform billing.finalization_fence_schedule_v1(p_expected_revision, p_trigger, p_work, p_superseded);
    elsif p_mode = 'catch_up' then
        perform billing.dimension_open(v_dimension, v_reservation, p_input, 0, '{"state": "none"}');
        perform billing.catch_up_schedule(p_work, p_expected_revision, p_superseded);
    end if;
    return v_revision;
end $$;
