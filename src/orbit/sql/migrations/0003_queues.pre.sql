-- Purpose: queues, each of one namespace (TSK-01).

create table orbit.queues (
    queue_id varchar(64) collate "C" primary key,
    namespace_id varchar(64) collate "C" not null,
    name varchar(64) collate "C" not null,
    enabled boolean not null default true,
    max_running integer not null default 100 check (max_running > 0),
    lease_seconds integer not null default 60 check (lease_seconds between 5 and 3600),
    created_at timestamptz not null default clock_timestamp(),
    unique (namespace_id, name)
);

comment on table orbit.queues is '任务队列';
comment on column orbit.queues.queue_id is '队列标识';
comment on column orbit.queues.namespace_id is '所属命名空间标识';
comment on column orbit.queues.name is '队列名称，命名空间内唯一';
comment on column orbit.queues.enabled is '是否启用';
comment on column orbit.queues.max_running is '同时运行的尝试数量上限';
comment on column orbit.queues.lease_seconds is '任务尝试租约秒数';
comment on column orbit.queues.created_at is '创建时间';
