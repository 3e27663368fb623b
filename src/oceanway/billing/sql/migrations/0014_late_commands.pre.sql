-- Purpose: an open exposure charged or waived by hand, once for each case, with its two events (TX-12, APP-11, REF-50).

create table billing.late_command_result (
    late_settlement_command_result_ref text collate "C" primary key,
    operation_id text collate "C" not null unique,
    settlement_dimension_id text collate "C" not null,
    case_ref text collate "C" not null unique,
    action text collate "C" not null check (action in ('charge', 'waive')),
    amount numeric not null check (amount > 0 and scale(amount) <= 9),
    from_revision bigint not null check (from_revision >= 1),
    to_revision bigint not null check (to_revision = from_revision + 1),
    grant_jti text collate "C" not null unique references billing.grant_consumed (grant_jti),
    actor_workforce_principal_id text collate "C" not null,
    result_committed_event_id uuid not null unique
        references seapost.event (event_id) deferrable initially deferred,
    case_resolution_event_id uuid not null unique
        references seapost.event (event_id) deferrable initially deferred,
    digest text collate "C" not null,
    document bytea not null,  -- LateSettlementCommandResult@1
    exposure bytea not null,  -- LateSettlementExposure@1, closed
    unique (settlement_dimension_id, to_revision),
    foreign key (settlement_dimension_id, to_revision)
        references billing.dimension_revision (settlement_dimension_id, revision) deferrable initially deferred
);

create trigger late_command_result_immutable before update or delete on billing.late_command_result
    for each row execute function billing.guard_reject_change();
