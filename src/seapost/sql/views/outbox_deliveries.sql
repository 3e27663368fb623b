-- Purpose: the deliveries as the specification describes them (STO-08, AMB-01, AMB-32): every column is readable in every
-- state. The status is the one place that holds the delivery; counts and last errors come from the attempt facts.
create view seapost.outbox_deliveries as
select d.event_id, v.delivery_set_version, d.destination, m.consumer_name,
       m.expected_receipt_type, m.expected_receipt_schema_version,
       m.projection_name as required_projection_name, m.projection_version as required_projection_version,
       m.mandatory,
       case when a.event_id is not null then 'acknowledged' when q.event_id is not null then 'quarantined'
            when l.event_id is not null then 'leased' when r.event_id is not null then 'pending' end as status,
       d.created_at, r.available_at,
       case when l.event_id is not null then s.owner end as lease_owner,
       l.token as lease_token, l.expires_at as lease_expires_at,
       case when r.event_id is null then s.attempt_id end as current_attempt_id,
       coalesce(s.attempt_number, 0) as attempt_count,
       coalesce(l.failure_count, r.failure_count) as failure_count,
       coalesce(l.lost_count, r.lost_count) as lost_count,
       s.started_at as last_attempt_at,
       a.acknowledged_at as delivered_at,
       f.error_code as last_error_code, f.error_ref as last_error_ref,
       case when a.event_id is not null then m.consumer_name end as ack_consumer_name,
       case when a.event_id is not null then m.expected_receipt_type end as ack_receipt_type,
       a.receipt_ref as ack_receipt_key,
       case when a.event_id is not null then m.expected_receipt_schema_version end as ack_receipt_schema_version,
       case when a.event_id is not null then 'jcs-sha256-v1' end as ack_receipt_digest_algorithm_version,
       encode(a.receipt_digest, 'hex') as ack_receipt_digest,
       case when a.event_id is not null then 'jcs-sha256-v1' end as ack_event_envelope_digest_algorithm_version,
       case when a.event_id is not null then encode(e.digest, 'hex') end as ack_event_envelope_sha256
from seapost.delivery as d
join seapost.delivery_set_member as m on m.member_id = d.member_id
join seapost.delivery_set_version as v on v.definition_id = m.definition_id
join seapost.event as e on e.event_id = d.event_id
left join seapost.delivery_ready as r on r.event_id = d.event_id and r.destination = d.destination
left join seapost.delivery_lease as l on l.event_id = d.event_id and l.destination = d.destination
left join seapost.delivery_acknowledgement as a on a.event_id = d.event_id and a.destination = d.destination
left join seapost.delivery_quarantine as q on q.event_id = d.event_id and q.destination = d.destination
left join lateral (
    select s.attempt_id, s.attempt_number, s.started_at, s.owner
    from seapost.delivery_attempt_start as s
    where s.event_id = d.event_id and s.destination = d.destination
    order by s.attempt_number desc limit 1) as s on true
left join lateral (
    select f.error_code, f.error_ref
    from seapost.delivery_attempt_start as b
    join seapost.delivery_attempt_finish as f on f.event_id = b.event_id and f.attempt_id = b.attempt_id
    where b.event_id = d.event_id and b.destination = d.destination and f.error_code is not null
    order by b.attempt_number desc limit 1) as f on true;
