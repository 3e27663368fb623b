-- Purpose: tasks and the two indexes that claims and quotas read (TSK-02, TSK-07, TSK-09).

create table orbit.tasks (
    task_id varchar(64) collate "C" primary key,
    namespace_id varchar(64) collate "C" not null,
    application_id varchar(64) collate "C" not null,
    queue_id varchar(64) collate "C" not null,
    state varchar(16) collate "C" not null check (state in
        ('queued','running','succeeded','failed','cancelled','needs_review')),
    revision bigint not null default 1 check (revision >= 1),
    effect_policy varchar(16) collate "C" not null check (effect_policy in ('safe','unsafe')),
    effect_uncertain boolean not null default false,
    input_json text not null,
    result_json text,
    max_attempts integer not null default 3 check (max_attempts between 1 and 100),
    attempt_count integer not null default 0 check (attempt_count >= 0),
    current_attempt_id varchar(64) collate "C",
    available_at timestamptz not null default clock_timestamp(),
    created_by varchar(64) collate "C" not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);
create index tasks_ready_idx on orbit.tasks (queue_id, available_at, task_id) where state = 'queued';
create index tasks_open_idx on orbit.tasks (application_id) where state in ('queued','running');

comment on table orbit.tasks is '任务';
comment on column orbit.tasks.task_id is '任务标识';
comment on column orbit.tasks.namespace_id is '所属命名空间标识';
comment on column orbit.tasks.application_id is '所属应用标识';
comment on column orbit.tasks.queue_id is '所属队列标识';
comment on column orbit.tasks.state is '任务状态';
comment on column orbit.tasks.revision is '任务版本，每次状态变化加一';
comment on column orbit.tasks.effect_policy is '重复执行策略：safe 可安全重试，unsafe 不可';
comment on column orbit.tasks.effect_uncertain is '外部影响是否不确定';
comment on column orbit.tasks.input_json is '任务输入 JSON 文本';
comment on column orbit.tasks.result_json is '任务结果 JSON 原文，空表示尚无结果';
comment on column orbit.tasks.max_attempts is '最大尝试次数';
comment on column orbit.tasks.attempt_count is '已用尝试次数';
comment on column orbit.tasks.current_attempt_id is '当前尝试标识，可空';
comment on column orbit.tasks.available_at is '可领取时间';
comment on column orbit.tasks.created_by is '创建凭据标识';
comment on column orbit.tasks.created_at is '创建时间';
comment on column orbit.tasks.updated_at is '更新时间';
