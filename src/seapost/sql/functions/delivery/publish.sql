-- Purpose: publishes the events whose mandatory deliveries are all acknowledged (PUB-01, PUB-05). Its own statement, with
-- a snapshot taken after the caller's advisory locks, so it sees what committed while it waited (AMB-47).
-- offset 0 keeps each question a probe of one index entry, where a join planned on empty tables would read them whole.
-- Locks: none beyond the rows it inserts; the caller holds the publication lock of each event.
-- Errors: none.
create or replace function seapost.delivery_publish(p_event_ids uuid[])
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    insert into seapost.publication (event_id, published_at)
    select s.event_id, seapost.clock_now()
    from (select distinct u.event_id from unnest(p_event_ids) as u (event_id)) as s
    where not exists (select from seapost.publication as p where p.event_id = s.event_id offset 0)
      and not exists (
          select from seapost.delivery as d
          where d.event_id = s.event_id
            and not exists (select from seapost.delivery_acknowledgement as a
                            where a.event_id = d.event_id and a.destination = d.destination offset 0) offset 0)
$$;
