-- Purpose: permits, one row per running attempt (TSK-08).

create table orbit.permits (
    permit_id varchar(64) collate "C" primary key,
    queue_id varchar(64) collate "C" not null,
    attempt_id varchar(64) collate "C" not null unique,
    created_at timestamptz not null default clock_timestamp()
);
create index permits_queue_idx on orbit.permits (queue_id);

comment on table orbit.permits is '并发许可';
comment on column orbit.permits.permit_id is '许可标识';
comment on column orbit.permits.queue_id is '队列标识';
comment on column orbit.permits.attempt_id is '占用许可的尝试标识';
comment on column orbit.permits.created_at is '创建时间';
