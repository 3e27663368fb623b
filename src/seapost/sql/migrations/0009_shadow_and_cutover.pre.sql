-- Purpose: several versions of a projection side by side: who may feed a version, which version readers are pointed at,
-- how a switch stands, and where events come from that no delivery brings (ORD-15 to ORD-18, SET-30, REF-05, REF-54,
-- AMB-39). The switch outlives transactions and crashes, so it is one durable row, locked by each of its steps.

alter table seapost.projection_version
    add column receipt_key text collate "C" check (length(receipt_key) between 1 and 100),  -- what its receipts stand under
    add column claim_token uuid,  -- the only shadow claim that may apply; null: none may
    add column rollback_until timestamptz,  -- a draining version is fed until then
    add column retired_at timestamptz,
    add column stalled_event_id uuid,  -- the event its feed cannot pass, and why; a restart remembers it
    add column stalled_reason text collate "C" check (length(stalled_reason) between 1 and 200),
    add column stalled_at timestamptz,
    add check ((stalled_event_id is null) = (stalled_reason is null) and (stalled_event_id is null) = (stalled_at is null));

create table seapost.projection_pointer (
    projection_name text collate "C" primary key check (length(projection_name) between 1 and 100),
    projection_version text collate "C" not null,
    switched_at timestamptz not null,
    readiness_proof_digest bytea check (octet_length(readiness_proof_digest) = 32),  -- null: the first version, nothing to prove
    foreign key (projection_name, projection_version) references seapost.projection_version
);
insert into seapost.projection_pointer (projection_name, projection_version, switched_at)
select v.projection_name, v.projection_version, v.registered_at from seapost.projection_version as v where v.state = 'active';

create table seapost.projection_cutover (  -- at most one per projection; its end is a row of projection_switch
    projection_name text collate "C" primary key,
    token uuid not null,
    phase text collate "C" not null check (phase in ('draining_shadow', 'catching_up', 'draining_active', 'switched')),
    from_version text collate "C" not null,
    to_version text collate "C" not null check (to_version <> from_version),
    delivery_set_version text collate "C" not null,  -- becomes active in the same transaction as the pointer
    definition_digest bytea not null check (octet_length(definition_digest) = 32),
    started_at timestamptz not null,
    phase_at timestamptz not null,
    actor text not null check (length(actor) between 1 and 200),
    candidate bytea check (octet_length(candidate) <= 1048576),  -- CutoverCandidate@1, canonical bytes
    readiness_proof bytea check (octet_length(readiness_proof) <= 1048576),  -- CutoverReadinessProof@1, canonical bytes
    producers text[] collate "C" not null check (cardinality(producers) <= 100),  -- of other databases, who activate after us
    activated text[] collate "C" not null default '{}',
    foreign key (projection_name, from_version) references seapost.projection_version,
    foreign key (projection_name, to_version) references seapost.projection_version
);

create table seapost.projection_candidate_rest (  -- members of a frozen candidate that had no receipt yet: the boundary
    projection_name text collate "C" not null references seapost.projection_cutover,
    event_id uuid not null,
    event_digest bytea not null check (octet_length(event_digest) = 32),
    primary key (projection_name, event_id)
);

create table seapost.projection_switch (  -- every switch that happened, and every one that was given up
    switch_id bigint generated always as identity primary key,
    projection_name text collate "C" not null,
    token uuid not null unique,
    from_version text collate "C" not null,
    to_version text collate "C" not null,
    outcome text collate "C" not null check (outcome in ('switched', 'abandoned')),
    ended_at timestamptz not null,
    actor text not null check (length(actor) between 1 and 200),
    candidate bytea,
    readiness_proof bytea,
    check (outcome = 'abandoned' or (candidate is not null and readiness_proof is not null))
);

create table seapost.projection_rebuild (  -- how far the feed of a version has read; a hint for speed, never a proof
    projection_name text collate "C" not null,
    projection_version text collate "C" not null,
    started_at timestamptz not null,
    moved_at timestamptz not null,
    finished_at timestamptz,
    passes int not null default 0 check (passes >= 0),  -- complete passes over the source
    cursor_event_id uuid,  -- of the pass under way
    applied_count bigint not null default 0 check (applied_count >= 0),
    expected_count bigint not null check (expected_count >= 0),
    primary key (projection_name, projection_version),
    foreign key (projection_name, projection_version) references seapost.projection_version
) with (fillfactor = 50);

create table seapost.accepted_event (  -- events of other databases, as first applied here; received evidence (AMB-39)
    event_id uuid primary key,
    accepted_at timestamptz not null,
    aggregate_revision bigint not null check (aggregate_revision between 1 and 9007199254740991),
    digest bytea not null generated always as (sha256(envelope)) stored,
    producer text collate "C" not null,
    event_type text collate "C" not null,
    schema_version text collate "C" not null,
    aggregate_kind text collate "C" not null,
    aggregate_id text collate "C" not null,
    envelope bytea not null check (octet_length(envelope) <= 1048576)
) partition by range (event_id);
create table seapost.accepted_event_0001 partition of seapost.accepted_event for values from (minvalue) to (maxvalue);

create table seapost.projection_support (  -- the events a version folds, and the tables it keeps, as its code declared them
    projection_name text collate "C" not null,
    projection_version text collate "C" not null,
    event_type text collate "C" not null,
    schema_version text collate "C" not null,
    primary key (projection_name, projection_version, event_type, schema_version),
    foreign key (projection_name, projection_version) references seapost.projection_version
);

create table seapost.projection_table (
    projection_name text collate "C" not null,
    projection_version text collate "C" not null,
    schema_name text collate "C" not null,
    table_name text collate "C" not null,
    primary key (projection_name, projection_version, schema_name, table_name),
    foreign key (projection_name, projection_version) references seapost.projection_version
);

do $$
declare
    v_table text;
begin
    foreach v_table in array array['accepted_event', 'projection_switch', 'projection_support', 'projection_table'] loop
        execute format('create trigger immutable before update or delete on seapost.%I for each row execute function seapost.refuse_change()', v_table);
        execute format('create trigger keep before truncate on seapost.%I for each statement execute function seapost.refuse_change()', v_table);
    end loop;
    execute 'create trigger keep before truncate on seapost.accepted_event_0001 for each statement execute function seapost.refuse_change()';
end $$;
