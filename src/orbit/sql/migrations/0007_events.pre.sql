-- Purpose: state events of tasks, one per revision (TSK-02, SRC-10).

create table orbit.events (
    event_id varchar(64) collate "C" primary key,
    namespace_id varchar(64) collate "C" not null,
    queue_id varchar(64) collate "C" not null,
    task_id varchar(64) collate "C" not null,
    attempt_id varchar(64) collate "C",
    type varchar(32) collate "C" not null check (type in ('task.created','task.started','task.requeued',
        'task.succeeded','task.failed','task.cancelled','task.needs_review')),
    task_revision bigint not null,
    created_at timestamptz not null default clock_timestamp(),
    unique (task_id, task_revision)
);

comment on table orbit.events is '任务状态事件';
comment on column orbit.events.event_id is '事件标识';
comment on column orbit.events.namespace_id is '所属命名空间标识';
comment on column orbit.events.queue_id is '队列标识';
comment on column orbit.events.task_id is '任务标识';
comment on column orbit.events.attempt_id is '相关尝试标识，可空';
comment on column orbit.events.type is '事件类型';
comment on column orbit.events.task_revision is '事件对应的任务版本';
comment on column orbit.events.created_at is '创建时间';
