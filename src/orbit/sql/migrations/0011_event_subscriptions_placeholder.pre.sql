-- Purpose: subscriptions as they were before results could be delivered: a placeholder (MIG-23).

create table orbit.event_subscriptions (
    subscription_id varchar(64) collate "C" primary key,
    namespace_id varchar(64) collate "C" not null,
    name varchar(128) collate "C" not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    unique (namespace_id, name)
);

comment on table orbit.event_subscriptions is '结果订阅';
comment on column orbit.event_subscriptions.subscription_id is '订阅标识';
comment on column orbit.event_subscriptions.namespace_id is '所属命名空间标识';
comment on column orbit.event_subscriptions.name is '订阅名称，命名空间内唯一';
comment on column orbit.event_subscriptions.created_at is '创建时间';
comment on column orbit.event_subscriptions.updated_at is '更新时间';
