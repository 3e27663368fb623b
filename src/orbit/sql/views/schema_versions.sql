-- Purpose: which migrations this database has, as the installer's check asks every schema, so that every process can
-- refuse one that it does not know.
create view orbit.schema_versions as
select m.number, m.name, m.phase, m.checksum, m.applied_at, m.release, m.finished_at
from orbit.schema_migration as m;

comment on view orbit.schema_versions is '数据库迁移记录（安装程序核对用）';
comment on column orbit.schema_versions.number is '迁移版本';
comment on column orbit.schema_versions.name is '迁移名称';
comment on column orbit.schema_versions.phase is '迁移阶段';
comment on column orbit.schema_versions.checksum is '迁移文件的 SHA-256 校验和';
comment on column orbit.schema_versions.applied_at is '开始时间';
comment on column orbit.schema_versions.release is '执行迁移的软件版本';
comment on column orbit.schema_versions.finished_at is '完成时间，空表示处于未完成状态';
