-- Purpose: metering's half of the proof that billing was told every settlement input: what was published, and how its deliveries
--   to billing stand (ORD-08). One row from one snapshot; nothing of billing is read.
create view metering.settlement_chain with (security_invoker = true) as
with delivered as (
    select d.event_id, d.status from seapost.outbox_deliveries as d where d.destination = 'billing_settlement_catch_up')
select (select count(*) from metering.settlement_pointer) as dimensions,
    (select count(*) from metering.settlement_input_snapshot) as published,
    (select count(*) from metering.settlement_input_snapshot as s
     where not exists (select from delivered as d where d.event_id = s.current_changed_event_id)) as unrouted,
    count(*) filter (where d.status = 'pending') as pending,
    count(*) filter (where d.status = 'leased') as leased,
    count(*) filter (where d.status = 'quarantined') as quarantined,
    count(*) filter (where d.status = 'acknowledged') as acknowledged
from delivered as d;
