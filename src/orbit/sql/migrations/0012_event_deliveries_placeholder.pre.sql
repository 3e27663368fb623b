-- Purpose: deliveries as they were before results could be delivered: a placeholder (MIG-23).

create table orbit.event_deliveries (
    delivery_id varchar(64) collate "C" primary key,
    namespace_id varchar(64) collate "C" not null,
    subscription_id varchar(64) collate "C" not null,
    event_id varchar(64) collate "C" not null,
    state varchar(16) collate "C" not null,
    attempts integer not null default 0,
    lease_epoch bigint not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    constraint event_deliveries_identity unique (namespace_id, subscription_id, event_id)
);

comment on table orbit.event_deliveries is '结果交付';
comment on column orbit.event_deliveries.delivery_id is '交付标识';
comment on column orbit.event_deliveries.namespace_id is '所属命名空间标识';
comment on column orbit.event_deliveries.subscription_id is '订阅标识';
comment on column orbit.event_deliveries.event_id is '事件标识';
comment on column orbit.event_deliveries.state is '交付状态';
comment on column orbit.event_deliveries.attempts is '已用发送次数';
comment on column orbit.event_deliveries.lease_epoch is '租约代次';
comment on column orbit.event_deliveries.created_at is '创建时间';
comment on column orbit.event_deliveries.updated_at is '更新时间';
