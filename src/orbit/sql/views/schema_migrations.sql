-- Purpose: the migrations of this database in the form of MIG-19, for operators: one row per version.
create view orbit.schema_migrations as
select v.number::bigint as version, v.name, v.checksum, v.finished_at is null as dirty, v.applied_at as started_at,
    v.finished_at as applied_at
from orbit.schema_versions as v;

comment on view orbit.schema_migrations is '数据库迁移记录';
comment on column orbit.schema_migrations.version is '迁移版本';
comment on column orbit.schema_migrations.name is '迁移名称';
comment on column orbit.schema_migrations.checksum is '迁移文件的 SHA-256 校验和';
comment on column orbit.schema_migrations.dirty is '是否处于未完成状态';
comment on column orbit.schema_migrations.started_at is '开始时间';
comment on column orbit.schema_migrations.applied_at is '完成时间';
