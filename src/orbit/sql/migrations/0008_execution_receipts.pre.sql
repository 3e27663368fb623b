-- Purpose: execution receipts, at most one per attempt (TSK-11).

create table orbit.execution_receipts (
    receipt_id varchar(64) collate "C" primary key,
    namespace_id varchar(64) collate "C" not null,
    task_id varchar(64) collate "C" not null,
    attempt_id varchar(64) collate "C" not null unique,
    event_id varchar(64) collate "C" not null,
    request_sha256 varchar(64) collate "C" not null,
    response_json text not null,
    created_at timestamptz not null default clock_timestamp()
);

comment on table orbit.execution_receipts is '执行结果回执';
comment on column orbit.execution_receipts.receipt_id is '回执标识';
comment on column orbit.execution_receipts.namespace_id is '所属命名空间标识';
comment on column orbit.execution_receipts.task_id is '任务标识';
comment on column orbit.execution_receipts.attempt_id is '尝试标识，每个尝试至多一份回执';
comment on column orbit.execution_receipts.event_id is '对应状态事件标识';
comment on column orbit.execution_receipts.request_sha256 is '确认请求指纹';
comment on column orbit.execution_receipts.response_json is '原回执 JSON 文本';
comment on column orbit.execution_receipts.created_at is '创建时间';
