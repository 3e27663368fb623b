-- Purpose: the consumer's side: one receipt per consumer and event, for ever (RCP rules, DLV-20).
-- The digest is a generated column over the canonical bytes it covers, so it cannot differ from them.

create table seapost.inbox_receipt (
    event_id uuid not null,
    committed_at timestamptz not null,
    event_digest bytea not null check (octet_length(event_digest) = 32),
    receipt_digest bytea not null generated always as (sha256(receipt_candidate)) stored,
    consumer text collate "C" not null check (length(consumer) between 1 and 100),
    receipt_ref text collate "C" not null check (length(receipt_ref) between 1 and 200),
    receipt_candidate bytea not null check (octet_length(receipt_candidate) <= 65536),
    primary key (consumer, event_id)
) partition by range (event_id);
create table seapost.inbox_receipt_0001 partition of seapost.inbox_receipt for values from (minvalue) to (maxvalue);
