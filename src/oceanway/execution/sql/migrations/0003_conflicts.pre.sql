-- Purpose: that two claims of execution exclude each other; while such a fact is not repaired, reads answer `conflicting`
--   with its quad (REF-21, FIN-06).

create table execution.eligibility_conflict (
    execution_eligibility_conflict_fact_ref text collate "C" primary key,
    execution_attempt_id text collate "C" not null references execution.attempt,
    digest text collate "C" not null,
    document bytea not null,  -- ExecutionEligibilityConflictFact@1
    declared_at timestamptz not null default clock_timestamp(),
    repaired_at timestamptz
);
create unique index eligibility_conflict_open_idx on execution.eligibility_conflict (execution_attempt_id)
    where repaired_at is null;

create table execution.finalization_conflict (
    run_execution_finalization_conflict_fact_ref text collate "C" primary key,
    run_id text collate "C" not null references execution.run_execution,
    digest text collate "C" not null,
    document bytea not null,  -- RunExecutionFinalizationConflictFact@1
    declared_at timestamptz not null default clock_timestamp(),
    repaired_at timestamptz
);
create unique index finalization_conflict_open_idx on execution.finalization_conflict (run_id) where repaired_at is null;

create trigger eligibility_conflict_kept before update on execution.eligibility_conflict
    for each row execute function execution.guard_conflict();
create trigger eligibility_conflict_no_delete before delete on execution.eligibility_conflict
    for each row execute function execution.guard_reject_change();
create trigger finalization_conflict_kept before update on execution.finalization_conflict
    for each row execute function execution.guard_conflict();
create trigger finalization_conflict_no_delete before delete on execution.finalization_conflict
    for each row execute function execution.guard_reject_change();
