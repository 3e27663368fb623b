-- Purpose: what could not be processed, in sight (STO-11).
create view seapost.outbox_quarantine as
select q.destination, q.event_id, q.reason, q.error_ref as sanitized_error_ref,
       'jcs-sha256-v1'::text as event_envelope_digest_algorithm_version,
       encode(q.event_digest, 'hex') as event_envelope_sha256,
       q.quarantined_at, q.acknowledged_at, q.case_id, q.attempt_id
from seapost.delivery_quarantine as q;
