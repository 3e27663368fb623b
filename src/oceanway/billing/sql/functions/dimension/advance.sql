-- Purpose: moves a dimension to its next revision: every fact that changes its money goes through here, so that the chain of
--   causes has no gap and the books balance (CASE-31, AMB-29). Booked at once: `p_booked` to the account's debit, the exposure
--   to its new amount; what an open exposure gives up returns to what was released.
-- Locks: the state, the reservation, the account.
-- Errors: OW002 the revision, the cause or the amounts before are no longer current; OW008 what the account covers is not what
--   was decided: `p_covers` true demands that it covers `p_claim`, false that it does not, null does not ask.
create or replace function billing.dimension_advance(
    p_dimension text, p_from_revision bigint, p_cause uuid, p_event uuid, p_kind text, p_fact_ref text,
    p_booked numeric, p_waived numeric, p_exposure numeric, p_case_ref text, p_covers boolean, p_claim numeric
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_state billing.dimension_state;
    v_account text;
    v_available numeric;
    v_opened numeric;
begin
    select * into v_state from billing.dimension_state as d
    where d.settlement_dimension_id = p_dimension for no key update;
    if (v_state.state_revision, v_state.last_event_id) is distinct from (p_from_revision, p_cause) then
        raise exception using errcode = 'OW002', message = 'the dimension has moved on';
    end if;
    v_opened := p_exposure - v_state.exposure_amount;
    update billing.reservation as r
    set settled = r.settled + p_booked, exposure_open = r.exposure_open + v_opened,
        released = r.released - p_booked - v_opened
    where r.billing_reservation_id = v_state.billing_reservation_id
    returning r.billing_account_id into v_account;
    select a.available into v_available from billing.account as a
    where a.billing_account_id = v_account for no key update;
    if p_covers is not null and p_covers is distinct from v_available >= p_claim then
        raise exception using errcode = 'OW008', message = 'what the account covers has changed';
    end if;
    update billing.account as a set available = a.available - p_booked
    where a.billing_account_id = v_account and p_booked <> 0;
    insert into billing.ledger_entry (billing_reservation_id, billing_account_id, settlement_dimension_id, kind, amount,
        source_ref)
    select v_state.billing_reservation_id, v_account, p_dimension, e.kind, e.amount, p_fact_ref
    from (values ('settle', p_booked), ('exposure', v_opened), ('release', - p_booked - v_opened)) as e (kind, amount)
    where e.amount <> 0;
    insert into billing.dimension_revision (settlement_dimension_id, revision, fact_kind, fact_ref, event_id,
        causation_event_id)
    values (p_dimension, p_from_revision + 1, p_kind, p_fact_ref, p_event, p_cause);
    update billing.dimension_state as d
    set state_revision = p_from_revision + 1, settled_amount = d.settled_amount + p_booked, waived_amount = p_waived,
        exposure_amount = p_exposure, exposure_case_ref = coalesce(p_case_ref, d.exposure_case_ref),
        exposure_state = case when p_exposure > 0 then 'open'
            when d.exposure_state = 'open' then 'resolved' else d.exposure_state end,
        last_event_id = p_event
    where d.settlement_dimension_id = p_dimension;
end $$;
