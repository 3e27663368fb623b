-- Purpose: events in quarantine on their way to a projection that the version with these receipts did not fold either (ORD-05 d).
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_quarantined(p_name text, p_key text)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select count(*)
    from seapost.delivery_quarantine as q
    join seapost.delivery as d on d.event_id = q.event_id and d.destination = q.destination
    join seapost.delivery_set_member as m on m.member_id = d.member_id
    where m.projection_name = p_name
      and not exists (select from seapost.inbox_receipt as i where i.consumer = p_key and i.event_id = q.event_id)
$$;
