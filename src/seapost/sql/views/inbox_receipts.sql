-- Purpose: the receipts of this consumer database, for operators and auditors; runtime reads are targeted (inbox_read_v1).
create view seapost.inbox_receipts as
select i.consumer, i.event_id, i.committed_at, encode(i.event_digest, 'hex') as event_envelope_sha256,
       i.receipt_ref, encode(i.receipt_digest, 'hex') as receipt_digest, i.receipt_candidate
from seapost.inbox_receipt as i;
