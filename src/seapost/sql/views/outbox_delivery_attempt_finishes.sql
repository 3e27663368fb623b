-- Purpose: the immutable finishes of attempts, at most one per start (STO-10, REF-06).
create view seapost.outbox_delivery_attempt_finishes as
select f.attempt_id, f.event_id, f.finished_at,
       (array['acknowledged', 'retryable', 'non_retryable', 'lease_expired_unknown'])[f.outcome] as outcome,
       (array['none', 'scheduled', 'quarantined', 'reclaimable'])[f.outcome] as retry_disposition,
       f.error_code as normalized_error_code, f.error_ref as sanitized_error_ref
from seapost.delivery_attempt_finish as f;
