-- Purpose: credentials; only the digest of a token is stored (AUT-14).

create table orbit.credentials (
    credential_id varchar(64) collate "C" primary key,
    namespace_id varchar(64) collate "C" not null,
    application_id varchar(64) collate "C" not null,
    name varchar(64) collate "C" not null,
    token_sha256 bytea not null unique check (octet_length(token_sha256) = 32),
    actions text[] not null,
    all_queues boolean not null default false,
    queue_ids text[] not null default '{}',
    expires_at timestamptz,
    revoked_at timestamptz,
    rotated_from varchar(64) collate "C",
    created_at timestamptz not null default clock_timestamp()
);

comment on table orbit.credentials is '访问凭据';
comment on column orbit.credentials.credential_id is '凭据标识';
comment on column orbit.credentials.namespace_id is '所属命名空间标识';
comment on column orbit.credentials.application_id is '所属应用标识';
comment on column orbit.credentials.name is '凭据名称';
comment on column orbit.credentials.token_sha256 is '令牌的 SHA-256 摘要，不保存明文';
comment on column orbit.credentials.actions is '授权动作集合';
comment on column orbit.credentials.all_queues is '是否允许访问全部队列';
comment on column orbit.credentials.queue_ids is '允许访问的队列标识集合';
comment on column orbit.credentials.expires_at is '失效时间，空表示不过期';
comment on column orbit.credentials.revoked_at is '吊销时间，空表示未吊销';
comment on column orbit.credentials.rotated_from is '轮换前的凭据标识';
comment on column orbit.credentials.created_at is '创建时间';
