-- Purpose: namespaces and their applications with an optional limit of open tasks (TSK-01, TSK-07).

create table orbit.namespaces (
    namespace_id varchar(64) collate "C" primary key,
    name varchar(64) collate "C" not null unique,
    enabled boolean not null default true,
    created_at timestamptz not null default clock_timestamp()
);
create table orbit.applications (
    application_id varchar(64) collate "C" primary key,
    namespace_id varchar(64) collate "C" not null,
    name varchar(64) collate "C" not null,
    enabled boolean not null default true,
    created_at timestamptz not null default clock_timestamp(),
    unique (namespace_id, name)
);
create table orbit.application_quotas (
    application_id varchar(64) collate "C" primary key,
    max_open_tasks integer check (max_open_tasks between 1 and 100000) -- null: no limit
);

comment on table orbit.namespaces is '命名空间';
comment on column orbit.namespaces.namespace_id is '命名空间标识';
comment on column orbit.namespaces.name is '命名空间名称，全局唯一';
comment on column orbit.namespaces.enabled is '是否启用';
comment on column orbit.namespaces.created_at is '创建时间';
comment on table orbit.applications is '应用';
comment on column orbit.applications.application_id is '应用标识';
comment on column orbit.applications.namespace_id is '所属命名空间标识';
comment on column orbit.applications.name is '应用名称，命名空间内唯一';
comment on column orbit.applications.enabled is '是否启用';
comment on column orbit.applications.created_at is '创建时间';
comment on table orbit.application_quotas is '应用额度';
comment on column orbit.application_quotas.application_id is '应用标识';
comment on column orbit.application_quotas.max_open_tasks is '未结束任务数量上限，空表示不限';

comment on table orbit.schema_migration is '数据库迁移记录';
comment on column orbit.schema_migration.number is '迁移版本';
comment on column orbit.schema_migration.phase is '迁移阶段：pre 先于新版本，post 后于新版本';
comment on column orbit.schema_migration.name is '迁移名称';
comment on column orbit.schema_migration.checksum is '迁移文件的 SHA-256 校验和';
comment on column orbit.schema_migration.release is '执行迁移的软件版本';
comment on column orbit.schema_migration.applied_at is '开始时间';
comment on column orbit.schema_migration.finished_at is '完成时间，空表示处于未完成状态';
comment on table orbit.schema_resolution is '未完成迁移的人工处理记录';
comment on column orbit.schema_resolution.number is '迁移版本';
comment on column orbit.schema_resolution.phase is '迁移阶段';
comment on column orbit.schema_resolution.started_at is '被处理的那次执行的开始时间';
comment on column orbit.schema_resolution.state is '处理结论：applied 已完成，reverted 已撤销';
comment on column orbit.schema_resolution.reason is '处理原因';
comment on column orbit.schema_resolution.actor is '处理者的数据库用户';
comment on column orbit.schema_resolution.resolved_at is '处理时间';
comment on table orbit.schema_object is '函数、视图与权限文件的应用记录';
comment on column orbit.schema_object.kind is '对象种类';
comment on column orbit.schema_object.name is '对象名称';
comment on column orbit.schema_object.checksum is '对象文件的 SHA-256 校验和';
comment on column orbit.schema_object.release is '应用该文件的软件版本';
comment on column orbit.schema_object.applied_at is '应用时间';
