-- Purpose: received evidence, so that a rebuild reads nobody else's tables and asks nobody again (AMB-39).

create table operations.accepted_events (  -- canonical envelopes of other producers; received evidence, no owner state
    event_id uuid primary key,
    producer text collate "C" not null check (producer <> 'core'),
    event_type text collate "C" not null,
    envelope bytea not null,
    envelope_sha256 bytea not null check (octet_length(envelope_sha256) = 32),
    accepted_at timestamptz not null default clock_timestamp()
);

create table operations.owner_read_results (  -- an owner's answer to one complete question, with the quad it carried
    operation text collate "C" not null,
    purpose text collate "C" not null,
    arguments_sha256 bytea not null check (octet_length(arguments_sha256) = 32),
    object_ref text collate "C" not null,
    object_schema_version text collate "C" not null,
    object_digest_algorithm_version text collate "C" not null,
    object_digest text collate "C" not null,
    arguments bytea not null,
    answer bytea not null,
    read_at timestamptz not null default clock_timestamp(),
    primary key (operation, purpose, arguments_sha256)
);

create trigger accepted_events_immutable before update or delete on operations.accepted_events
    for each row execute function operations.guard_reject_change();
create trigger accepted_events_no_truncate before truncate on operations.accepted_events
    for each statement execute function operations.guard_reject_change();
create trigger owner_read_results_immutable before update or delete on operations.owner_read_results
    for each row execute function operations.guard_reject_change();
create trigger owner_read_results_no_truncate before truncate on operations.owner_read_results
    for each statement execute function operations.guard_reject_change();
