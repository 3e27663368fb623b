-- Purpose: which event says which fact, what was consumed once, and who did what (AMB-41, SEC-15, REF-14).

create table billing.event_source (  -- one event of a type for one fact, for life
    event_type text collate "C" not null,
    source_fact_key text collate "C" not null,
    event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred,
    primary key (event_type, source_fact_key)
);

create table billing.grant_consumed (  -- a grant allows one command, once
    grant_jti text collate "C" primary key,
    operation_id text collate "C" not null unique,
    action text collate "C" not null,
    consumed_at timestamptz not null default clock_timestamp()
);

create table billing.audit_record (
    audit_id bigint generated always as identity primary key,
    actor text collate "C" not null,
    action text collate "C" not null,
    subject_ref text collate "C" not null,
    object_digest text collate "C" not null,
    occurred_at timestamptz not null default clock_timestamp()
);
create index audit_record_subject_idx on billing.audit_record (subject_ref);

create trigger event_source_immutable before update or delete on billing.event_source
    for each row execute function billing.guard_reject_change();
create trigger grant_consumed_immutable before update or delete on billing.grant_consumed
    for each row execute function billing.guard_reject_change();
create trigger audit_record_immutable before update or delete on billing.audit_record
    for each row execute function billing.guard_reject_change();
