-- Purpose: the fence of a reservation's finalization: its watermarks, its state and the lease of its latest work
--   (Annex A.5, REF-35, AMB-45). The settlement watermarks are the rows of billing.settlement_inbox.

create sequence billing.fencing_token;  -- one for every lease of this schema: tokens never repeat

create table billing.finalization_fence (
    billing_finalization_fence_id text collate "C" primary key,
    billing_reservation_id text collate "C" not null unique references billing.reservation (billing_reservation_id),
    run_id text collate "C" not null unique,
    fence_revision bigint not null check (fence_revision >= 1),
    latest_work_generation bigint not null check (latest_work_generation >= 1),
    state text collate "C" not null check (state in
        ('pending', 'waiting_for_closure', 'waiting_for_settlement_input', 'reconciliation_required', 'finalized')),
    active_work_ref text collate "C",  -- the work of the latest generation, while it is not finished
    closure_watermark jsonb not null default '{"state": "none"}',
    coordinator_receipt jsonb,  -- quad of the receipt that was committed with the closure watermark (FIN-05)
    resolution_watermark jsonb not null default '{"state": "none"}',
    reconciliation_generation bigint not null default 0 check (reconciliation_generation >= 0),  -- cases so far
    finalization_fact_ref text collate "C",
    available_at timestamptz not null default clock_timestamp(),
    lease_owner text collate "C",
    fencing_token bigint,
    lease_expires_at timestamptz,
    attempt_number integer not null default 0 check (attempt_number >= 0),
    retry_count integer not null default 0 check (retry_count >= 0),
    check ((closure_watermark ->> 'state' = 'none') = (coordinator_receipt is null)),
    check ((state = 'pending') = (active_work_ref is not null)),
    check ((state = 'finalized') = (finalization_fact_ref is not null)),
    check (state <> 'reconciliation_required' or reconciliation_generation >= 1),
    check (num_nulls(lease_owner, fencing_token, lease_expires_at) in (0, 3)),
    check (state = 'pending' or lease_owner is null)
);
create index finalization_fence_ready_idx on billing.finalization_fence (available_at) where state = 'pending';

create trigger finalization_fence_no_delete before delete on billing.finalization_fence
    for each row execute function billing.guard_reject_change();
