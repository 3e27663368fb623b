-- Purpose: the facts of events and deliveries. Rows are inserted and never change (STO-13, STO-15, STO-28).
-- Big tables are range-partitioned by event_id, which is a UUIDv7 and so ordered by time: old partitions can leave by
-- DETACH CONCURRENTLY. Each starts with one partition without bounds, so an append never fails for want of a partition.
-- There are no foreign keys between these tables at guard level lean (docs/decisions/0004); the functions are the only
-- writers, and the view audit_places proves what keys would.

create table seapost.event (
    event_id uuid primary key,
    created_at timestamptz not null,
    occurred_at timestamptz not null,
    aggregate_revision bigint not null check (aggregate_revision between 1 and 9007199254740991),
    definition_id int not null,
    mandatory_count smallint not null,
    digest_algorithm smallint not null default 1 check (digest_algorithm = 1),  -- 1 = jcs-sha256-v1
    digest bytea not null generated always as (sha256(envelope)) stored,  -- hashed once, cannot differ from the bytes
    event_type text collate "C" not null,
    schema_version text collate "C" not null,
    aggregate_kind text collate "C" not null,
    aggregate_id text collate "C" not null,
    envelope bytea not null check (octet_length(envelope) <= 1048576)  -- canonical bytes, exactly as appended
) partition by range (event_id);
create table seapost.event_0001 partition of seapost.event for values from (minvalue) to (maxvalue);

create table seapost.delivery (
    event_id uuid not null,
    created_at timestamptz not null,
    member_id int not null,
    destination text collate "C" not null,
    primary key (event_id, destination)
) partition by range (event_id);
create table seapost.delivery_0001 partition of seapost.delivery for values from (minvalue) to (maxvalue);

create table seapost.delivery_attempt_start (
    event_id uuid not null,
    attempt_id bigint not null,
    token uuid not null,
    started_at timestamptz not null,
    attempt_number int not null check (attempt_number >= 1),
    destination text collate "C" not null,
    owner text collate "C" not null check (length(owner) between 1 and 64),
    primary key (event_id, attempt_id)
) partition by range (event_id);
create table seapost.delivery_attempt_start_0001 partition of seapost.delivery_attempt_start
    for values from (minvalue) to (maxvalue);

create table seapost.delivery_attempt_finish (
    event_id uuid not null,
    attempt_id bigint not null,
    finished_at timestamptz not null,
    outcome smallint not null check (outcome between 1 and 4),  -- 1 acknowledged 2 retryable 3 non_retryable 4 lease_expired_unknown
    error_code text collate "C" check (error_code in (
        'dependency_unavailable', 'timeout', 'capacity_protected', 'owner_unreadable', 'revision_gap',
        'fence_unbindable', 'ack_invalid', 'worker_stopped', 'lease_expired', 'schema_unknown', 'schema_invalid',
        'digest_conflict', 'envelope_invariant_broken', 'identity_conflict', 'version_unsupported',
        'policy_max_attempts')),
    error_ref text collate "C" check (error_ref ~ '^[A-Za-z0-9_-]{1,64}$'),
    primary key (event_id, attempt_id),  -- at most one finish per start (DLV-15)
    check ((outcome = 1) = (error_code is null)),
    check (error_ref is null or error_code is not null)
) partition by range (event_id);
create table seapost.delivery_attempt_finish_0001 partition of seapost.delivery_attempt_finish
    for values from (minvalue) to (maxvalue);

create table seapost.delivery_acknowledgement (
    event_id uuid not null,
    attempt_id bigint not null,
    acknowledged_at timestamptz not null,
    destination text collate "C" not null,
    receipt_digest bytea not null check (octet_length(receipt_digest) = 32),
    receipt_ref text collate "C" not null check (length(receipt_ref) between 1 and 200),
    primary key (event_id, destination)
) partition by range (event_id);
create table seapost.delivery_acknowledgement_0001 partition of seapost.delivery_acknowledgement
    for values from (minvalue) to (maxvalue);

create table seapost.publication (
    event_id uuid primary key,
    published_at timestamptz not null
) partition by range (event_id);
create table seapost.publication_0001 partition of seapost.publication for values from (minvalue) to (maxvalue);

create table seapost.delivery_quarantine (  -- not partitioned: what nobody has dealt with must not leave with old events
    event_id uuid not null,
    attempt_id bigint not null,
    quarantined_at timestamptz not null,
    destination text collate "C" not null,
    reason text collate "C" not null check (reason in (
        'schema_unknown', 'schema_invalid', 'digest_conflict', 'envelope_invariant_broken', 'identity_conflict',
        'version_unsupported', 'policy_max_attempts', 'bootstrap_unparsable')),
    error_ref text collate "C" check (error_ref ~ '^[A-Za-z0-9_-]{1,64}$'),
    event_digest bytea not null check (octet_length(event_digest) = 32),
    acknowledged_at timestamptz,  -- an operator has seen it; changes nothing about the delivery (REF-08)
    case_id text collate "C" check (length(case_id) between 1 and 200),
    primary key (event_id, destination),
    check (case_id is null or acknowledged_at is not null)
);
create index delivery_quarantine_time on seapost.delivery_quarantine (quarantined_at, event_id, destination);

create table seapost.aggregate_revision (  -- filled at guard level strict only: one event per revision of an aggregate
    producer text collate "C" not null,
    aggregate_kind text collate "C" not null,
    aggregate_id text collate "C" not null,
    aggregate_revision bigint not null,
    event_id uuid not null,
    primary key (producer, aggregate_kind, aggregate_id, aggregate_revision)
);

create sequence seapost.attempt_id as bigint cache 32;
