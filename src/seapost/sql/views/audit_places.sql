-- Purpose: what no foreign key proves on the way, in one snapshot: every row is a defect. For tests, doctor and restore
-- drills; it reads everything.
create view seapost.audit_places as
with places as (
    select r.event_id, r.destination from seapost.delivery_ready as r
    union all select l.event_id, l.destination from seapost.delivery_lease as l
    union all select a.event_id, a.destination from seapost.delivery_acknowledgement as a
    union all select q.event_id, q.destination from seapost.delivery_quarantine as q)
select 'delivery in ' || count(p.event_id) || ' places' as defect, d.event_id, d.destination
from seapost.delivery as d left join places as p on p.event_id = d.event_id and p.destination = d.destination
group by d.event_id, d.destination having count(p.event_id) <> 1
union all
select 'place without delivery', p.event_id, p.destination
from places as p left join seapost.delivery as d on d.event_id = p.event_id and d.destination = p.destination
where d.event_id is null
union all
select 'delivery without event', d.event_id, d.destination
from seapost.delivery as d left join seapost.event as e on e.event_id = d.event_id where e.event_id is null
union all
select 'mandatory delivery missing', e.event_id, m.destination
from seapost.event as e
join seapost.delivery_set_member as m on m.definition_id = e.definition_id and m.event_type = e.event_type
    and m.schema_version = e.schema_version and m.mandatory
left join seapost.delivery as d on d.event_id = e.event_id and d.member_id = m.member_id and d.destination = m.destination
where d.event_id is null
union all
select 'delivery outside its definition', d.event_id, d.destination
from seapost.delivery as d join seapost.event as e on e.event_id = d.event_id
left join seapost.delivery_set_member as m on m.member_id = d.member_id and m.definition_id = e.definition_id
    and m.event_type = e.event_type and m.schema_version = e.schema_version and m.destination = d.destination and m.mandatory
where m.member_id is null
union all
select 'event of an unknown pair', e.event_id, null
from seapost.event as e
left join seapost.delivery_set_event as s on s.definition_id = e.definition_id and s.event_type = e.event_type
    and s.schema_version = e.schema_version and s.mandatory_count = e.mandatory_count
where s.definition_id is null
union all
select 'start without delivery', s.event_id, s.destination
from seapost.delivery_attempt_start as s
left join seapost.delivery as d on d.event_id = s.event_id and d.destination = s.destination where d.event_id is null
union all
select 'finish without start', f.event_id, f.attempt_id::text
from seapost.delivery_attempt_finish as f
left join seapost.delivery_attempt_start as s on s.event_id = f.event_id and s.attempt_id = f.attempt_id
where s.attempt_id is null
union all
select 'open start without lease', s.event_id, s.destination
from seapost.delivery_attempt_start as s
left join seapost.delivery_attempt_finish as f on f.event_id = s.event_id and f.attempt_id = s.attempt_id
left join seapost.delivery_lease as l on l.event_id = s.event_id and l.attempt_id = s.attempt_id and l.token = s.token
where f.attempt_id is null and l.attempt_id is null
union all
select 'lease without its open start', l.event_id, l.destination
from seapost.delivery_lease as l
left join seapost.delivery_attempt_start as s on s.event_id = l.event_id and s.attempt_id = l.attempt_id
    and s.destination = l.destination
left join seapost.delivery_attempt_finish as f on f.event_id = l.event_id and f.attempt_id = l.attempt_id
where s.attempt_id is null or f.attempt_id is not null
union all
select 'acknowledged without its finish', a.event_id, a.destination
from seapost.delivery_acknowledgement as a
left join seapost.delivery_attempt_finish as f on f.event_id = a.event_id and f.attempt_id = a.attempt_id and f.outcome = 1
where f.attempt_id is null
union all
select 'acknowledging finish without acknowledgement', f.event_id, f.attempt_id::text
from seapost.delivery_attempt_finish as f
left join seapost.delivery_acknowledgement as a on a.event_id = f.event_id and a.attempt_id = f.attempt_id
where f.outcome = 1 and a.attempt_id is null
union all
select 'quarantined without its finish', q.event_id, q.destination
from seapost.delivery_quarantine as q
left join seapost.delivery_attempt_finish as f on f.event_id = q.event_id and f.attempt_id = q.attempt_id and f.outcome = 3
where f.attempt_id is null
union all
select 'quarantining finish without quarantine', f.event_id, f.attempt_id::text
from seapost.delivery_attempt_finish as f
left join seapost.delivery_quarantine as q on q.event_id = f.event_id and q.attempt_id = f.attempt_id
where f.outcome = 3 and q.attempt_id is null
union all
select 'settled by an attempt of another destination', p.event_id, p.destination
from (select a.event_id, a.destination, a.attempt_id from seapost.delivery_acknowledgement as a
      union all select q.event_id, q.destination, q.attempt_id from seapost.delivery_quarantine as q) as p
join seapost.delivery_attempt_start as s on s.event_id = p.event_id and s.attempt_id = p.attempt_id
where s.destination <> p.destination
union all
select 'copy differs from the fact', p.event_id, p.destination
from (select r.event_id, r.destination, r.member_id, r.created_at, r.event_digest from seapost.delivery_ready as r
      union all select l.event_id, l.destination, l.member_id, l.created_at, l.event_digest from seapost.delivery_lease as l
      union all select q.event_id, q.destination, d.member_id, d.created_at, q.event_digest
      from seapost.delivery_quarantine as q
      join seapost.delivery as d on d.event_id = q.event_id and d.destination = q.destination) as p
join seapost.delivery as d on d.event_id = p.event_id and d.destination = p.destination
join seapost.event as e on e.event_id = p.event_id
where (p.member_id, p.created_at, p.event_digest) is distinct from (d.member_id, d.created_at, e.digest)
union all
select 'published too early or not at all', e.event_id, null
from seapost.event as e left join seapost.publication as p on p.event_id = e.event_id
where (p.event_id is not null) <> (e.mandatory_count > 0 and e.mandatory_count = (
    select count(*) from seapost.delivery_acknowledgement as a where a.event_id = e.event_id))
union all
select 'publication without event', p.event_id, null
from seapost.publication as p left join seapost.event as e on e.event_id = p.event_id where e.event_id is null
union all
select 'attempt numbers not 1 to n', s.event_id, s.destination
from seapost.delivery_attempt_start as s
group by s.event_id, s.destination having count(*) <> max(s.attempt_number) or count(distinct s.attempt_number) <> count(*)
union all
select 'attempt count differs from the starts', p.event_id, p.destination
from (select r.event_id, r.destination, r.attempt_count from seapost.delivery_ready as r
      union all select l.event_id, l.destination, l.attempt_count from seapost.delivery_lease as l) as p
where p.attempt_count <> (select count(*) from seapost.delivery_attempt_start as s
                          where s.event_id = p.event_id and s.destination = p.destination);
