-- Purpose: the chain of decisions behind a grant, each step bound to the one before (CASE-25, REF-41).

create table operations.decision_step (
    chain_id text collate "C" not null,  -- the operation that the grant will allow
    step smallint not null,
    step_name text collate "C" not null,
    object_ref text collate "C" not null unique,
    object_digest text collate "C" not null,
    predecessor_digest text collate "C",
    actor_workforce_principal_id text collate "C" not null,
    document bytea not null,
    recorded_at timestamptz not null default clock_timestamp(),
    primary key (chain_id, step),
    unique (chain_id, step_name),
    check ((step = 1) = (predecessor_digest is null)),
    check (step between 1 and 8)
);

create table operations.grant_issued (  -- a grant is one token: its identifier is issued once
    grant_jti text collate "C" primary key,
    chain_id text collate "C" not null unique,
    grant_digest text collate "C" not null,
    expires_at timestamptz not null,
    issued_at timestamptz not null default clock_timestamp()
);

create table operations.audit_record (  -- who did what, append-only (REF-14)
    audit_id bigint generated always as identity primary key,
    actor text collate "C" not null,
    action text collate "C" not null,
    subject_ref text collate "C" not null,
    request_digest text collate "C" not null,
    occurred_at timestamptz not null default clock_timestamp()
);

create table operations.pseudonym_key (  -- one random key of this database, for names that support may not see
    singleton boolean primary key default true check (singleton),
    key bytea not null check (octet_length(key) = 32)
);
insert into operations.pseudonym_key (key)
values (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));

create trigger decision_step_immutable before update or delete on operations.decision_step
    for each row execute function operations.guard_reject_change();
create trigger grant_issued_immutable before update or delete on operations.grant_issued
    for each row execute function operations.guard_reject_change();
create trigger audit_record_immutable before update or delete on operations.audit_record
    for each row execute function operations.guard_reject_change();
