-- Purpose: where the books do not balance; no row when they do. A reservation: its ledger says what its row says, and a
--   finalized one is accounted for in full. An account: what is available is what was deposited, less what is reserved, plus
--   what was released or is held open.
create view billing.audit_balance as
with booked as (
    select e.billing_reservation_id, e.billing_account_id,
        coalesce(sum(e.amount) filter (where e.kind = 'reserve'), 0) as reserved,
        coalesce(sum(e.amount) filter (where e.kind = 'settle'), 0) as settled,
        coalesce(sum(e.amount) filter (where e.kind = 'release'), 0) as released,
        coalesce(sum(e.amount) filter (where e.kind = 'exposure'), 0) as exposure
    from billing.ledger_entry as e
    group by e.billing_reservation_id, e.billing_account_id)
select 'reservation'::text as subject, r.billing_reservation_id as subject_id,
    jsonb_build_object('reserved', r.reserved_amount, 'settled', r.settled, 'released', r.released,
        'exposure', r.exposure_open) as stated,
    jsonb_build_object('reserved', b.reserved, 'settled', b.settled, 'released', b.released,
        'exposure', b.exposure) as booked
from billing.reservation as r
left join booked as b using (billing_reservation_id)
where (r.reserved_amount, r.settled, r.released, r.exposure_open, r.billing_account_id)
        is distinct from (b.reserved, b.settled, b.released, b.exposure, b.billing_account_id)
   or (r.state = 'finalized' and b.reserved <> b.settled + b.released + b.exposure)
union all
select 'account', a.billing_account_id,
    jsonb_build_object('deposited', a.deposited, 'available', a.available),
    jsonb_build_object('deposited', coalesce(d.deposited, 0), 'available', coalesce(d.deposited, 0) + coalesce(m.moved, 0))
from billing.account as a
left join (select i.billing_account_id, sum(i.amount) as deposited from billing.deposit as i group by 1) as d
    using (billing_account_id)
left join (select b.billing_account_id, sum(b.released + b.exposure - b.reserved) as moved from booked as b group by 1) as m
    using (billing_account_id)
where (a.deposited, a.available)
    is distinct from (coalesce(d.deposited, 0), coalesce(d.deposited, 0) + coalesce(m.moved, 0));
