-- Purpose: billing's half of the proof that every settlement input it was told of has been evaluated: receipts, watermarks,
--   fences and works (ORD-08). One row from one snapshot; nothing of metering is read.
create view billing.settlement_chain with (security_invoker = true) as
with accepted as (
    select r.document -> 'eventSettlementInput' as input
    from seapost.inbox_receipts as i
    cross join lateral (select convert_from(i.receipt_candidate, 'UTF8')::jsonb as document) as r
    where i.consumer = 'billing_settlement_catch_up_consumer')
select (select count(*) from accepted) as receipts,
    count(*) as watermarks,
    count(*) filter (where not exists (select from accepted as a where a.input = billing.settlement_quint(i)))
        as without_receipt,
    count(*) filter (where c.state is null or c.state = 'awaiting_finalization') as awaiting_finalization,
    count(*) filter (where c.state = 'pending_verification') as pending_verification,
    count(*) filter (where c.state = 'blocked_on_owner_conflict') as blocked,
    count(*) filter (where c.state = 'caught_up') as caught_up,
    count(*) filter (where c.state = 'caught_up' and d.last_evaluated
        is distinct from billing.settlement_quint(i) || '{"state": "present"}') as behind,
    (select count(*) from billing.catch_up_work as w
     where not exists (select from billing.catch_up_work_finish as f
        where f.billing_settlement_catch_up_work_ref = w.billing_settlement_catch_up_work_ref)) as unfinished_works
from billing.settlement_inbox as i
left join billing.catch_up_fence as c using (settlement_dimension_id)
left join billing.dimension_state as d using (settlement_dimension_id);
