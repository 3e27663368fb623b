-- Purpose: the moving rows. A delivery that is not finished stands in exactly one of these two small tables; each move
-- is one statement that deletes from one table and inserts into the next.

create table seapost.delivery_ready (
    event_id uuid not null,
    available_at timestamptz not null,
    created_at timestamptz not null,
    member_id int not null,
    attempt_count int not null check (attempt_count >= 0),
    failure_count int not null check (failure_count >= 0),  -- finishes that count towards a configured maximum (AMB-18)
    lost_count int not null check (lost_count >= 0),  -- attempts in a row that ended without an answer about this delivery
    event_digest bytea not null,
    suspect boolean not null generated always as (lost_count > 0) stored,
    destination text collate "C" not null,
    primary key (event_id, destination)
);
create index delivery_ready_claim on seapost.delivery_ready (destination, suspect, available_at, created_at, event_id);

create table seapost.delivery_lease (
    event_id uuid not null,
    attempt_id bigint not null,
    token uuid not null,
    expires_at timestamptz not null,
    created_at timestamptz not null,
    member_id int not null,
    attempt_count int not null check (attempt_count >= 1),
    failure_count int not null,
    lost_count int not null,
    company int not null check (company >= 1),  -- deliveries claimed by the same call
    event_digest bytea not null,
    destination text collate "C" not null,
    primary key (event_id, destination)
);
create index delivery_lease_expiry on seapost.delivery_lease (expires_at);

-- Vacuum by count: these tables are empty or full within a second, so a share of their size says nothing. Statistics of
-- them are never true either, which is why the hot functions leave the planner no choice.
alter table seapost.delivery_ready set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_threshold = 2147483647);
alter table seapost.delivery_lease set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_threshold = 2147483647);
