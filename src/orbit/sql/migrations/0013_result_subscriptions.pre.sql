-- Purpose: result subscriptions: the journal of results, the lock rows of the streams, the fields that subscriptions and
-- deliveries were missing, and the guards that prove the rules at commit (MIG-01, JRN-20, SRC-21..SRC-23).
-- Rows of before are kept as history: their subscriptions are disabled, their deliveries keep attempts and epoch (MIG-10,
-- MIG-12, MIG-13). There are no foreign keys: a check would lock rows that no path here may lock (LCK-10).

create table orbit.event_stream_locks (
    namespace_id varchar(64) collate "C" primary key,
    retained_from_sequence bigint not null default 1 check (retained_from_sequence >= 1),
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);
insert into orbit.event_stream_locks (namespace_id) select n.namespace_id from orbit.namespaces as n;

create table orbit.result_events (
    event_id varchar(64) collate "C" primary key,  -- the same id as events.event_id (SRC-11)
    namespace_id varchar(64) collate "C" not null,
    queue_id varchar(64) collate "C" not null,
    task_id varchar(64) collate "C" not null,
    type varchar(32) collate "C" not null
        check (type in ('task.succeeded', 'task.failed', 'task.cancelled', 'task.needs_review')),
    sequence bigint not null check (sequence >= 1),
    snapshot_json text not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint result_events_sequence unique (namespace_id, sequence),
    constraint result_events_snapshot check (orbit.guard_snapshot_v1_valid(snapshot_json, type, task_id, queue_id))
);
create index result_events_scan_idx on orbit.result_events (queue_id, sequence);  -- a queue has one namespace

alter table orbit.event_subscriptions
    add column legacy boolean not null default true,
    add column status varchar(16) collate "C" not null default 'DISABLED',
    add column owner_credential_id varchar(64) collate "C",
    add column queue_id varchar(64) collate "C",
    add column types text[],
    add column from_sequence bigint,
    add column cursor_sequence bigint not null default 0 check (cursor_sequence >= 0),
    add column max_pending integer,
    add column max_attempts integer,
    add column pending_count integer not null default 0 check (pending_count >= 0),
    add column revision bigint not null default 1 check (revision >= 1);
alter table orbit.event_subscriptions
    alter column legacy drop default,
    alter column status drop default,
    add constraint event_subscriptions_status check (
        (legacy and status = 'DISABLED') or (not legacy and status in ('ACTIVE', 'PAUSED'))),
    add constraint event_subscriptions_bound check (legacy or (
        name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$'
        and owner_credential_id is not null and queue_id is not null
        and types is not null and cardinality(types) between 1 and 4
        and types <@ array['task.succeeded', 'task.failed', 'task.cancelled', 'task.needs_review']
        and cardinality(array_positions(types, 'task.succeeded')) <= 1
        and cardinality(array_positions(types, 'task.failed')) <= 1
        and cardinality(array_positions(types, 'task.cancelled')) <= 1
        and cardinality(array_positions(types, 'task.needs_review')) <= 1
        and from_sequence is not null and from_sequence >= 0 and cursor_sequence >= from_sequence
        and max_pending is not null and max_pending between 1 and 1000
        and max_attempts is not null and max_attempts between 1 and 100
        and pending_count <= max_pending));
create index event_subscriptions_owner_idx
    on orbit.event_subscriptions (namespace_id, owner_credential_id, created_at, subscription_id);
alter table orbit.event_subscriptions set (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

alter table orbit.event_deliveries
    add column legacy boolean not null default true,
    add column event_sequence bigint,
    add column attempt_budget integer,
    add column available_at timestamptz,
    add column lease_secret_sha256 bytea,
    add column lease_connection_id varchar(64) collate "C",
    add column lease_expires_at timestamptz,
    add column acked_at timestamptz,
    add column revision bigint not null default 1 check (revision >= 1);
update orbit.event_deliveries set attempt_budget = greatest(attempts, 20);
update orbit.event_subscriptions as s
set pending_count = (
    select count(*) from orbit.event_deliveries as d
    where d.namespace_id = s.namespace_id and d.subscription_id = s.subscription_id
      and d.state in ('PENDING', 'LEASED', 'EXPIRED'));
alter table orbit.event_deliveries
    alter column legacy drop default,
    alter column attempt_budget set not null,
    add constraint event_deliveries_budget check (
        attempts >= 0 and lease_epoch >= 0 and attempts <= attempt_budget
        and (legacy or attempt_budget between 1 and 1000000)),
    add constraint event_deliveries_state check (legacy or (
        state in ('PENDING', 'LEASED', 'ACKED', 'EXPIRED')
        and event_sequence is not null and available_at is not null
        and ((lease_epoch = 0) = (lease_secret_sha256 is null))
        and ((lease_epoch = 0) = (lease_expires_at is null))
        and ((lease_epoch = 0) = (lease_connection_id is null))
        and (state in ('PENDING') or lease_epoch >= 1)
        and ((state = 'ACKED') = (acked_at is not null))
        and (state <> 'EXPIRED' or attempts >= attempt_budget)
        and (state <> 'PENDING' or attempts < attempt_budget))),
    add constraint event_deliveries_secret check (
        lease_secret_sha256 is null or octet_length(lease_secret_sha256) = 32);
-- A subscription has one namespace, so the hot indexes do not repeat it.
create index event_deliveries_ready_idx
    on orbit.event_deliveries (subscription_id, event_sequence) where state = 'PENDING';
create index event_deliveries_leased_idx
    on orbit.event_deliveries (subscription_id, lease_expires_at) where state = 'LEASED';
create unique index event_deliveries_list_idx on orbit.event_deliveries (subscription_id, event_sequence);
create index event_deliveries_expired_idx
    on orbit.event_deliveries (subscription_id, event_sequence) where state = 'EXPIRED';
alter table orbit.event_deliveries set (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

create trigger result_events_immutable before update or delete on orbit.result_events
    for each row execute function orbit.guard_reject_change();
create trigger events_immutable before update or delete on orbit.events
    for each row execute function orbit.guard_reject_change();
create trigger execution_receipts_immutable before update or delete on orbit.execution_receipts
    for each row execute function orbit.guard_reject_change();
create trigger audit_log_immutable before update or delete on orbit.audit_log
    for each row execute function orbit.guard_reject_change();
create trigger event_subscriptions_no_delete before delete on orbit.event_subscriptions
    for each row execute function orbit.guard_reject_change();
create trigger event_deliveries_no_delete before delete on orbit.event_deliveries
    for each row execute function orbit.guard_reject_change();
create trigger result_events_no_truncate before truncate on orbit.result_events
    for each statement execute function orbit.guard_reject_change();
create trigger events_no_truncate before truncate on orbit.events
    for each statement execute function orbit.guard_reject_change();
create trigger execution_receipts_no_truncate before truncate on orbit.execution_receipts
    for each statement execute function orbit.guard_reject_change();
create trigger audit_log_no_truncate before truncate on orbit.audit_log
    for each statement execute function orbit.guard_reject_change();
create trigger event_subscriptions_no_truncate before truncate on orbit.event_subscriptions
    for each statement execute function orbit.guard_reject_change();
create trigger event_deliveries_no_truncate before truncate on orbit.event_deliveries
    for each statement execute function orbit.guard_reject_change();

create constraint trigger events_require_journal after insert on orbit.events
    deferrable initially deferred for each row
    when (new.type in ('task.succeeded', 'task.failed', 'task.cancelled', 'task.needs_review'))
    execute function orbit.guard_require_journal();
create constraint trigger result_events_require_event after insert on orbit.result_events
    deferrable initially deferred for each row execute function orbit.guard_require_event();
create constraint trigger idempotency_records_complete after insert on orbit.idempotency_records
    deferrable initially deferred for each row execute function orbit.guard_require_response();
create trigger event_subscriptions_guard before update on orbit.event_subscriptions
    for each row execute function orbit.guard_subscription();
create trigger event_deliveries_guard before update on orbit.event_deliveries
    for each row execute function orbit.guard_delivery();

comment on table orbit.event_stream_locks is '命名空间结果流的锁行，只加锁，生产者不改写';
comment on column orbit.event_stream_locks.namespace_id is '命名空间标识';
comment on column orbit.event_stream_locks.retained_from_sequence is '仍保留的最小结果序号，目前固定为 1';
comment on column orbit.event_stream_locks.created_at is '创建时间';
comment on column orbit.event_stream_locks.updated_at is '更新时间';
comment on table orbit.result_events is '结果日志';
comment on column orbit.result_events.event_id is '事件标识，与状态事件相同';
comment on column orbit.result_events.namespace_id is '所属命名空间标识';
comment on column orbit.result_events.queue_id is '队列标识';
comment on column orbit.result_events.task_id is '任务标识';
comment on column orbit.result_events.type is '结果事件类型';
comment on column orbit.result_events.sequence is '命名空间内的提交序号';
comment on column orbit.result_events.snapshot_json is '不可变结果快照 JSON 文本，保留数值原文';
comment on column orbit.result_events.created_at is '创建时间';
comment on column orbit.event_subscriptions.name is '订阅名称，1 至 128 个 ASCII 字符，命名空间内唯一';
comment on column orbit.event_subscriptions.legacy is '是否为迁移前的历史占位订阅';
comment on column orbit.event_subscriptions.status is '订阅状态：ACTIVE、PAUSED、DISABLED';
comment on column orbit.event_subscriptions.owner_credential_id is '所属凭据标识';
comment on column orbit.event_subscriptions.queue_id is '绑定队列标识';
comment on column orbit.event_subscriptions.types is '冻结的结果事件类型集合';
comment on column orbit.event_subscriptions.from_sequence is '起始序号，订阅此序号之后的结果';
comment on column orbit.event_subscriptions.cursor_sequence is '已扫描并可靠建立交付记录的位置，不是已确认位置';
comment on column orbit.event_subscriptions.max_pending is '已物化但尚未确认的交付上限';
comment on column orbit.event_subscriptions.max_attempts is '每条新交付初始可发送次数';
comment on column orbit.event_subscriptions.pending_count is 'PENDING、LEASED、EXPIRED 的总数';
comment on column orbit.event_subscriptions.revision is '配置并发版本，物化和积压变化不增加';
comment on column orbit.event_deliveries.state is '交付状态：PENDING、LEASED、ACKED、EXPIRED';
comment on column orbit.event_deliveries.attempts is '已用发送次数，不归零';
comment on column orbit.event_deliveries.lease_epoch is '租约代次，每次领取加一，不归零';
comment on column orbit.event_deliveries.legacy is '是否为迁移前的历史交付';
comment on column orbit.event_deliveries.event_sequence is '来源结果序号，历史交付为空';
comment on column orbit.event_deliveries.attempt_budget is '累计可发送次数预算';
comment on column orbit.event_deliveries.available_at is '可领取时间';
comment on column orbit.event_deliveries.lease_secret_sha256 is '最近一次交付秘密的摘要';
comment on column orbit.event_deliveries.lease_connection_id is '最近一次领取的服务端连接标识';
comment on column orbit.event_deliveries.lease_expires_at is '最近一次租约截止时间';
comment on column orbit.event_deliveries.acked_at is '首次有效确认时间';
comment on column orbit.event_deliveries.revision is '交付版本，每次状态变化加一';
