-- Purpose: what proofs of completeness stand on and leave behind (ORD-05, ORD-10 to ORD-14, REF-52, REF-53).

create table seapost.projection_table_sum (  -- the rows of a view's table, as every fold left them: order-independent sums
    projection_name text collate "C" not null,
    projection_version text collate "C" not null,
    schema_name text collate "C" not null,
    table_name text collate "C" not null,
    slot smallint not null check (slot between 0 and 63),  -- spreads what would be one row that every transaction writes
    row_count numeric not null,
    sum_a numeric not null,
    sum_b numeric not null,
    primary key (projection_name, projection_version, schema_name, table_name, slot),
    foreign key (projection_name, projection_version, schema_name, table_name) references seapost.projection_table
) with (fillfactor = 50);

create table seapost.accepted_observation (  -- the second source of a projection: facts that no event tells (REF-52)
    observation_id uuid primary key,
    accepted_at timestamptz not null,
    digest bytea not null generated always as (sha256(envelope)) stored,
    projection_name text collate "C" not null check (length(projection_name) between 1 and 100),
    envelope bytea not null check (octet_length(envelope) <= 1048576)  -- canonical bytes
);

create table seapost.observation_receipt (
    projection_name text collate "C" not null,
    projection_version text collate "C" not null,
    observation_id uuid not null,
    observation_digest bytea not null check (octet_length(observation_digest) = 32),
    applied_at timestamptz not null,
    primary key (projection_name, projection_version, observation_id),
    foreign key (projection_name, projection_version) references seapost.projection_version
);

create table seapost.completeness_snapshot (  -- every proof that was made
    snapshot_id uuid primary key,
    evaluated_at timestamptz not null,
    projection_name text collate "C" not null,
    projection_version text collate "C" not null,
    definition_digest bytea not null check (octet_length(definition_digest) = 32),  -- of what was asked, and how
    candidate_digest bytea check (octet_length(candidate_digest) = 32),  -- of the frozen candidate it speaks of; null: of all
    result text collate "C" not null check (result in ('complete_for_supported_scope', 'partial_source_gap', 'unknown')),
    manifest bytea not null check (octet_length(manifest) <= 1048576),  -- CompletenessProofManifest@1, canonical bytes
    manifest_digest bytea not null generated always as (sha256(manifest)) stored,
    foreign key (projection_name, projection_version) references seapost.projection_version
);
create index completeness_snapshot_latest on seapost.completeness_snapshot
    (projection_name, projection_version, evaluated_at desc);

do $$
declare
    v_table text;
begin
    foreach v_table in array array['accepted_observation', 'observation_receipt', 'completeness_snapshot'] loop
        execute format('create trigger immutable before update or delete on seapost.%I for each row execute function seapost.refuse_change()', v_table);
        execute format('create trigger keep before truncate on seapost.%I for each statement execute function seapost.refuse_change()', v_table);
    end loop;
end $$;
