-- Purpose: restore archives of events, and what stays here for ever of an event that has left the hot tables
-- (STO-02, RET-05, RET-07, REF-55). Whoever reads the source reads hot tables, accepted events and archives together.

create type seapost.event_id_range as range (subtype = uuid);

create table seapost.archive (
    archive_id uuid primary key,
    source_kind text collate "C" not null check (source_kind in ('event', 'accepted_event')),
    lower_event_id uuid not null,  -- inclusive
    upper_event_id uuid not null check (upper_event_id > lower_event_id),  -- exclusive
    event_count bigint not null check (event_count >= 0),
    archive_digest bytea not null generated always as (sha256(manifest)) stored,  -- the manifest names the digest of every file
    manifest bytea not null check (octet_length(manifest) <= 1048576),  -- canonical bytes
    location text not null check (length(location) between 1 and 500),  -- of the store, without a secret
    state text collate "C" not null check (state in ('registered', 'verified', 'damaged', 'leaving', 'left')),
    registered_at timestamptz not null,
    verified_at timestamptz,  -- when every byte of it was last read and every digest compared
    left_at timestamptz,  -- since then its events are here only as archived_event
    check ((state = 'left') = (left_at is not null)),
    check (state not in ('verified', 'leaving', 'left') or verified_at is not null),
    exclude using gist (seapost.event_id_range(lower_event_id, upper_event_id) with &&)
        where (source_kind = 'event' and state in ('leaving', 'left')),
    exclude using gist (seapost.event_id_range(lower_event_id, upper_event_id) with &&)
        where (source_kind = 'accepted_event' and state in ('leaving', 'left'))
);

create table seapost.archived_event (  -- what stays of an event: enough to refuse it as new and to prove it is not missing
    event_id uuid primary key,
    archive_id uuid not null,
    aggregate_revision bigint not null check (aggregate_revision between 1 and 9007199254740991),
    digest bytea not null check (octet_length(digest) = 32),
    producer text collate "C" not null,
    event_type text collate "C" not null,
    schema_version text collate "C" not null,
    aggregate_kind text collate "C" not null,
    aggregate_id text collate "C" not null
) partition by range (event_id);
create table seapost.archived_event_0001 partition of seapost.archived_event for values from (minvalue) to (maxvalue);

create table seapost.recovery_baseline (  -- drills that succeeded: an archive, the runtime that read it, and the evidence
    baseline_id uuid primary key,
    archive_id uuid not null references seapost.archive,
    archive_digest bytea not null check (octet_length(archive_digest) = 32),
    runtime_version text not null check (length(runtime_version) between 1 and 100),
    evidence bytea not null check (octet_length(evidence) <= 1048576),  -- RestoreDrillEvidence@1, canonical bytes
    evidence_digest bytea not null generated always as (sha256(evidence)) stored,
    drilled_at timestamptz not null,
    approved_by text check (length(approved_by) between 1 and 200),  -- retention asks for it
    approved_at timestamptz,
    check ((approved_by is null) = (approved_at is null))
);
create index recovery_baseline_archive on seapost.recovery_baseline (archive_id);
