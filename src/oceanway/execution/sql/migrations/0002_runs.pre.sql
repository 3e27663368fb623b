-- Purpose: the runs that execution works on, their attempts, how each attempt ended and how the run closed (REF-18 to
--   REF-20).

create table execution.run_execution (  -- the compare-and-set of the closure happens on this row (REF-20)
    run_id text collate "C" primary key,
    billing_reservation_id text collate "C" not null unique,
    run_admission_manifest_ref text collate "C" not null unique,
    admission_digest text collate "C" not null,
    admission_document bytea not null,  -- RunAdmissionManifest@1 of core
    attempt_set_state text collate "C" not null default 'open' check (attempt_set_state in ('open', 'closed')),
    closed_at timestamptz,
    check ((attempt_set_state = 'closed') = (closed_at is not null))
);

create table execution.attempt (
    execution_attempt_id text collate "C" primary key,
    run_id text collate "C" not null references execution.run_execution,
    run_step_id text collate "C" not null,
    gateway_bound boolean not null,
    attempt_execution_manifest_ref text collate "C" not null unique,
    digest text collate "C" not null,
    document bytea not null  -- AttemptExecutionManifest@1
);
create index attempt_run_idx on execution.attempt (run_id, run_step_id, execution_attempt_id);

create table execution.attempt_start (  -- the attempt was handed to its gateway
    execution_attempt_id text collate "C" primary key references execution.attempt,
    started_at timestamptz not null default clock_timestamp()
);

create table execution.eligibility_fact (
    execution_eligibility_fact_ref text collate "C" primary key,
    execution_attempt_id text collate "C" not null unique references execution.attempt,
    disposition_kind text collate "C" not null check (disposition_kind in ('gateway_bound', 'not_dispatched')),
    result_state text collate "C" check (result_state in ('succeeded', 'failed')),
    failure_reason_code text collate "C",
    not_dispatched_reason_code text collate "C",
    digest text collate "C" not null,
    document bytea not null,  -- ExecutionEligibilityFact@1
    finalized_event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred,
    check ((disposition_kind = 'gateway_bound') = (result_state is not null)),
    check ((disposition_kind = 'not_dispatched') = (not_dispatched_reason_code is not null)),
    check ((coalesce(result_state, '') = 'failed') = (failure_reason_code is not null))
);

create table execution.attempt_set_manifest (
    run_id text collate "C" primary key references execution.run_execution,
    attempt_set_manifest_ref text collate "C" not null unique,
    attempt_count bigint not null check (attempt_count >= 0),
    digest text collate "C" not null,
    document bytea not null  -- RunAttemptSetManifest@1
);

create table execution.run_finalization (
    run_id text collate "C" primary key references execution.attempt_set_manifest,
    run_execution_finalization_ref text collate "C" not null unique,
    run_execution_finalization_state_version bigint not null check (run_execution_finalization_state_version = 1),
    closure_operation_id text collate "C" not null unique,
    digest text collate "C" not null,
    document bytea not null,  -- RunExecutionFinalizationFact@1
    closed_event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred
);

create trigger run_execution_forward before update on execution.run_execution
    for each row execute function execution.guard_run();
create trigger run_execution_no_delete before delete on execution.run_execution
    for each row execute function execution.guard_reject_change();
create trigger attempt_immutable before update or delete on execution.attempt
    for each row execute function execution.guard_reject_change();
create trigger attempt_start_immutable before update or delete on execution.attempt_start
    for each row execute function execution.guard_reject_change();
create trigger eligibility_fact_immutable before update or delete on execution.eligibility_fact
    for each row execute function execution.guard_reject_change();
create trigger attempt_set_manifest_immutable before update or delete on execution.attempt_set_manifest
    for each row execute function execution.guard_reject_change();
create trigger run_finalization_immutable before update or delete on execution.run_finalization
    for each row execute function execution.guard_reject_change();
