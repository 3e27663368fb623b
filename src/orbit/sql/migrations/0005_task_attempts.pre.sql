-- Purpose: attempts of tasks with their leases (TSK-09).

create table orbit.task_attempts (
    attempt_id varchar(64) collate "C" primary key,
    namespace_id varchar(64) collate "C" not null,
    task_id varchar(64) collate "C" not null,
    number integer not null check (number >= 1),
    state varchar(16) collate "C" not null check (state in
        ('RUNNING','SUCCEEDED','FAILED','EXPIRED','ABANDONED')),
    credential_id varchar(64) collate "C" not null,
    worker_id varchar(128) collate "C" not null,
    lease_secret_sha256 bytea not null check (octet_length(lease_secret_sha256) = 32),
    lease_expires_at timestamptz not null,
    started_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    unique (task_id, number)
);

comment on table orbit.task_attempts is '任务尝试';
comment on column orbit.task_attempts.attempt_id is '尝试标识';
comment on column orbit.task_attempts.namespace_id is '所属命名空间标识';
comment on column orbit.task_attempts.task_id is '任务标识';
comment on column orbit.task_attempts.number is '任务内尝试序号';
comment on column orbit.task_attempts.state is '尝试状态';
comment on column orbit.task_attempts.credential_id is '领取凭据标识';
comment on column orbit.task_attempts.worker_id is '执行者标识';
comment on column orbit.task_attempts.lease_secret_sha256 is '尝试租约秘密摘要';
comment on column orbit.task_attempts.lease_expires_at is '尝试租约截止时间';
comment on column orbit.task_attempts.started_at is '开始时间';
comment on column orbit.task_attempts.finished_at is '结束时间';
