-- Purpose: who did what to delivery sets and quarantines (REF-14).
create view seapost.audit_records as
select a.audit_id, a.occurred_at, a.actor, a.action, a.subject_ref, encode(a.request_digest, 'hex') as request_digest
from seapost.audit_record as a;
