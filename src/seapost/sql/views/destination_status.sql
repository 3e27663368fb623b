-- Purpose: what metrics and the status command show about each destination of any registered definition. Counts stop at
-- 100,000 (a larger queue reads as 100,000), so that looking never costs the database more than a moment (MET-01).
-- starved_since is the oldest due delivery among the fair lanes that hold no more than an equal share of what is due: how
-- long tenants wait who did not cause the queue (F23). With one lane it is the oldest due delivery of all. Its counts stop
-- earlier, by a number: an expression as the limit lets the planner sort the whole backlog.
create view seapost.destination_status as
select n.destination, r.pending, r.due, r.oldest_created_at, r.next_available_at, s.suspects,
       l.leased, l.oldest_expiry_at, q.quarantined, q.unacknowledged as quarantined_unacknowledged,
       coalesce(t.fair_lanes, 1) as fair_lanes, f.lanes_due, f.starved_since
from (select distinct m.destination from seapost.delivery_set_member as m where m.mandatory) as n
cross join lateral seapost.destination_waiting(n.destination) as r
cross join lateral (
    select count(*) as suspects
    from (select from seapost.delivery_ready as r where r.destination = n.destination and r.suspect limit 100000) as c) as s
cross join lateral (
    select count(*) as leased, min(l.expires_at) as oldest_expiry_at
    from seapost.delivery_lease as l where l.destination = n.destination) as l
cross join lateral (
    select count(*) as quarantined, count(*) filter (where c.acknowledged_at is null) as unacknowledged
    from (select q.acknowledged_at from seapost.delivery_quarantine as q
          where q.destination = n.destination limit 100000) as c) as q
left join seapost.destination_setting as t on t.destination = n.destination
cross join lateral (
    select count(*) as lanes_due, min(s.head) filter (where s.due <= s.share) as starved_since
    from (select c.head, c.due, avg(c.due) over () as share
          from (select seapost.clock_now() as moment offset 0) as m
          cross join generate_series(0, coalesce(t.lanes_claimed, 1) - 1) as l (lane)
          cross join lateral (
              select count(*) as due, min(d.available_at) as head
              from ((select r.available_at from seapost.delivery_ready as r
                     where coalesce(t.lanes_claimed, 1) <= 8 and r.destination = n.destination and not r.suspect
                       and r.lane = l.lane and r.available_at <= m.moment
                     order by r.available_at limit 12500)
                    union all
                    (select r.available_at from seapost.delivery_ready as r
                     where t.lanes_claimed > 8 and r.destination = n.destination and not r.suspect
                       and r.lane = l.lane and r.available_at <= m.moment
                     order by r.available_at limit 1500)) as d) as c
          where c.due > 0) as s) as f;
