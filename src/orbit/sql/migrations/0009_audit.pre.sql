-- Purpose: the audit log (AUD-08).

create table orbit.audit_log (
    audit_id varchar(64) collate "C" primary key,
    namespace_id varchar(64) collate "C" not null,
    credential_id varchar(64) collate "C",
    action varchar(64) collate "C" not null,
    resource_type varchar(32) collate "C" not null,
    resource_id varchar(64) collate "C" not null,
    detail_json text not null,
    created_at timestamptz not null default clock_timestamp()
);
create index audit_resource_idx on orbit.audit_log (namespace_id, resource_type, resource_id, created_at);

comment on table orbit.audit_log is '审计日志';
comment on column orbit.audit_log.audit_id is '审计标识';
comment on column orbit.audit_log.namespace_id is '所属命名空间标识';
comment on column orbit.audit_log.credential_id is '操作凭据标识，系统操作为空';
comment on column orbit.audit_log.action is '审计动作';
comment on column orbit.audit_log.resource_type is '资源类型';
comment on column orbit.audit_log.resource_id is '资源标识';
comment on column orbit.audit_log.detail_json is '审计详情 JSON 文本，不含秘密和结果正文';
comment on column orbit.audit_log.created_at is '创建时间';
