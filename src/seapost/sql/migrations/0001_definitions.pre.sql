-- Purpose: delivery set definitions, the audit record and the guard level of this database.
-- Definitions are content-addressed and written once; only their status moves, forward (SET-12, SET-13, SET-17).

create table seapost.delivery_set_version (
    definition_id int generated always as identity primary key,  -- short name of the quad inside this database
    delivery_set_version text collate "C" not null unique check (length(delivery_set_version) between 1 and 100),
    definition_schema_version text collate "C" not null check (definition_schema_version = '1'),
    digest_algorithm_version text collate "C" not null check (digest_algorithm_version = 'jcs-sha256-v1'),
    definition_digest bytea not null generated always as (sha256(candidate)) stored,  -- cannot differ from the bytes
    status text collate "C" not null default 'registered' check (status in ('registered', 'active', 'retired')),
    registered_at timestamptz not null,
    activated_at timestamptz,
    source_release text not null check (length(source_release) <= 200),
    candidate bytea not null check (octet_length(candidate) <= 1048576),  -- canonical bytes that the digest covers
    unique (definition_digest),
    check ((status = 'registered') = (activated_at is null))
);
create unique index delivery_set_version_one_active on seapost.delivery_set_version ((true)) where status = 'active';

create table seapost.delivery_set_event (
    definition_id int not null references seapost.delivery_set_version,
    event_type text collate "C" not null,
    schema_version text collate "C" not null,
    mandatory_count smallint not null check (mandatory_count >= 0),
    primary key (definition_id, event_type, schema_version)
);

create table seapost.delivery_set_member (
    member_id int generated always as identity primary key,  -- a delivery freezes the whole line through this key
    definition_id int not null,
    event_type text collate "C" not null,
    schema_version text collate "C" not null,
    destination text collate "C" not null,
    consumer_name text collate "C" not null,
    mandatory boolean not null,
    expected_receipt_type text collate "C" not null,
    expected_receipt_schema_version text collate "C" not null,
    projection_name text collate "C",
    projection_version text collate "C",
    siblings smallint not null,  -- mandatory members of the same event; 1 needs no publication lock
    unique (definition_id, event_type, schema_version, destination),
    foreign key (definition_id, event_type, schema_version) references seapost.delivery_set_event,
    check ((projection_name is null) = (projection_version is null))
);

create table seapost.audit_record (
    audit_id bigint generated always as identity primary key,
    occurred_at timestamptz not null,
    actor text not null check (length(actor) between 1 and 200),
    action text not null check (length(action) between 1 and 100),
    subject_ref text not null check (length(subject_ref) between 1 and 500),
    request_digest bytea check (octet_length(request_digest) = 32)
);

create table seapost.guard_level (
    only_row boolean primary key default true check (only_row),
    level text not null check (level in ('lean', 'strict')),
    changed_at timestamptz not null
);
insert into seapost.guard_level (level, changed_at) values ('lean', clock_timestamp());
