-- Purpose: ends a work that a newer generation replaces: what was started and not finished gets its only Finish,
--   `superseded`; what nobody started has nothing to finish.
-- Locks: the primary key of the Finish; the caller holds the fence.
-- Errors: OW009 the Finish of the superseded work is missing.
create or replace function billing.catch_up_supersede(p_work_ref text, p_generation bigint, p_superseded bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_finish constant jsonb := convert_from(p_superseded, 'UTF8')::jsonb;
begin
    perform from billing.catch_up_work_start as s
    where s.billing_settlement_catch_up_work_ref = p_work_ref
      and not exists (select from billing.catch_up_work_finish as f
                      where f.billing_settlement_catch_up_work_ref = p_work_ref);
    if not found then
        return;
    end if;
    if (v_finish ->> 'billingSettlementCatchUpWorkRef', v_finish #>> '{outcome,state}',
            (v_finish #>> '{outcome,supersededByWorkGeneration}')::bigint)
        is distinct from (p_work_ref, 'superseded', p_generation) then
        raise exception using errcode = 'OW009', message = 'the Finish of the superseded work is missing';
    end if;
    perform billing.catch_up_finish_write(p_superseded);
end $$;
