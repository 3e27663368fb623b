-- Purpose: the projections of this database: which versions exist, how far each aggregate was applied, which revisions are
-- awaited, and what each version summed up (OPS-03, OPS-07, OPS-11, REF-05, REF-51). Receipts are those of the inbox, kept
-- under a key that names the version (docs/decisions/0017).

create table seapost.projection_version (
    projection_name text collate "C" not null check (length(projection_name) between 1 and 100),
    projection_version text collate "C" not null check (length(projection_version) between 1 and 32),
    state text collate "C" not null check (state in ('building', 'shadow', 'active', 'draining', 'retired')),
    registered_at timestamptz not null,
    primary key (projection_name, projection_version)
);
create unique index projection_version_one_active on seapost.projection_version (projection_name) where state = 'active';

create table seapost.projection_aggregate (
    projection_name text collate "C" not null,
    projection_version text collate "C" not null,
    producer text collate "C" not null,
    aggregate_kind text collate "C" not null,
    aggregate_id text collate "C" not null,
    revision bigint not null check (revision between 0 and 9007199254740991),  -- 0: locked for the first time, by a gap
    last_event_id uuid,
    check ((revision = 0) = (last_event_id is null)),
    primary key (projection_name, projection_version, producer, aggregate_kind, aggregate_id)
) with (fillfactor = 80);

create table seapost.projection_gap (
    projection_name text collate "C" not null,
    projection_version text collate "C" not null,
    producer text collate "C" not null,
    aggregate_kind text collate "C" not null,
    aggregate_id text collate "C" not null,
    expected_revision bigint not null check (expected_revision between 1 and 9007199254740991),  -- the one awaited
    seen_revision bigint not null check (seen_revision > expected_revision),  -- the highest that came too early
    first_seen_at timestamptz not null,
    resolved_at timestamptz check (resolved_at >= first_seen_at),
    primary key (projection_name, projection_version, producer, aggregate_kind, aggregate_id, expected_revision)
);
create index projection_gap_open on seapost.projection_gap (projection_name, projection_version, first_seen_at)
    where resolved_at is null;

create table seapost.projection_summary (
    projection_name text collate "C" not null,
    projection_version text collate "C" not null,
    slot smallint not null check (slot between 0 and 63),  -- spreads what would be one row that every transaction writes
    applied_count bigint not null check (applied_count > 0),
    last_applied_at timestamptz not null,
    primary key (projection_name, projection_version, slot)
) with (fillfactor = 50);
