-- Purpose: idempotency identities and their stored responses (IDM-01..IDM-05).

create table orbit.idempotency_records (
    identity_sha256 varchar(64) collate "C" primary key check (identity_sha256 ~ '^[0-9a-f]{64}$'),
    namespace_id varchar(64) collate "C" not null,
    credential_id varchar(64) collate "C" not null,
    action varchar(64) collate "C" not null,
    request_sha256 varchar(64) collate "C" not null check (request_sha256 ~ '^[0-9a-f]{64}$'),
    response_status integer,
    response_json text,
    created_at timestamptz not null default clock_timestamp()
);

comment on table orbit.idempotency_records is '幂等身份与原回执';
comment on column orbit.idempotency_records.identity_sha256 is '复合幂等身份的 SHA-256 十六进制值，固定 64 字符';
comment on column orbit.idempotency_records.namespace_id is '所属命名空间标识';
comment on column orbit.idempotency_records.credential_id is '所属凭据标识';
comment on column orbit.idempotency_records.action is '操作动作';
comment on column orbit.idempotency_records.request_sha256 is '请求指纹';
comment on column orbit.idempotency_records.response_status is '原响应状态码';
comment on column orbit.idempotency_records.response_json is '原响应 JSON 文本';
comment on column orbit.idempotency_records.created_at is '创建时间';
