-- Purpose: the immutable starts of attempts (STO-09).
create view seapost.outbox_delivery_attempt_starts as
select s.attempt_id, s.destination, s.event_id, s.token as lease_token, s.started_at, s.attempt_number, s.owner as lease_owner
from seapost.delivery_attempt_start as s;
