-- Purpose: how each subscription stands and why nothing moves (OPS-06, P6-06). Every figure is a bounded probe of one
--   index (F83): counts end with the window, and the last claim is sought among what is leased and the 32 newest
--   deliveries that ever were. `reason` is null while something moves. `due` means that a claim would find work: a ready
--   delivery, a lease past its deadline, or results of the queue behind the cursor and room for them.
-- Locks: none
-- Errors: none
create view orbit.subscription_status as
with counted as (
    select n.name as namespace, s.namespace_id, s.subscription_id, s.name, q.name as queue, s.queue_id,
        s.owner_credential_id, s.legacy, s.status, s.revision, t.last_sequence, t.retained_from_sequence, s.cursor_sequence,
        t.last_sequence - s.cursor_sequence as lag, s.pending_count, s.max_pending,
        r.ready, l.leased, l.overdue, x.expired, b.available_at as next_available_at, u.created_at as unscanned_since,
        greatest(l.claimed_at, c.claimed_at) as last_claimed_at,
        r.ready > 0 or l.overdue > 0 or (u.created_at is not null and s.pending_count < s.max_pending) as due
    from orbit.event_subscriptions as s
    join orbit.namespaces as n on n.namespace_id = s.namespace_id
    left join orbit.event_streams as t on t.namespace_id = s.namespace_id
    left join orbit.queues as q on q.queue_id = s.queue_id
    cross join lateral (
        select count(*)::integer as ready
        from (select from orbit.event_deliveries as d
              where d.subscription_id = s.subscription_id and d.state = 'PENDING' and d.available_at <= clock_timestamp()
              order by d.event_sequence limit 1000) as one) as r
    cross join lateral (
        select count(*)::integer as leased, (count(*) filter (where one.lease_expires_at <= clock_timestamp()))::integer
            as overdue, max(one.lease_expires_at) - interval '30 seconds' as claimed_at
        from (select d.lease_expires_at from orbit.event_deliveries as d
              where d.subscription_id = s.subscription_id and d.state = 'LEASED'
              order by d.lease_expires_at desc limit 1000) as one) as l
    cross join lateral (
        select count(*)::integer as expired
        from (select from orbit.event_deliveries as d
              where d.subscription_id = s.subscription_id and d.state = 'EXPIRED'
              order by d.event_sequence limit 1000) as one) as x
    left join lateral (
        select min(one.available_at) as available_at
        from (select d.available_at from orbit.event_deliveries as d
              where d.subscription_id = s.subscription_id and d.state = 'PENDING' and d.available_at > clock_timestamp()
              order by d.event_sequence limit 1000) as one) as b on true
    left join lateral (
        select max(one.lease_expires_at) - interval '30 seconds' as claimed_at
        from (select d.lease_expires_at from orbit.event_deliveries as d
              where d.subscription_id = s.subscription_id and d.lease_epoch > 0
              order by d.event_sequence desc limit 32) as one) as c on true
    left join lateral (
        select e.created_at from orbit.result_events as e
        where e.queue_id = s.queue_id and e.sequence > s.cursor_sequence order by e.sequence limit 1) as u on true
)
select c.*,
    case
        when c.legacy then 'DISABLED'
        when c.status = 'PAUSED' then 'PAUSED'
        when c.cursor_sequence + 1 < c.retained_from_sequence then 'HISTORY_EXPIRED'
        when c.due and c.last_claimed_at > clock_timestamp() - interval '60 seconds' then null
        when c.due then 'NOT_PULLED'
        when c.pending_count >= c.max_pending then 'WINDOW_FULL'
        when c.next_available_at is not null then 'BACKOFF'
        when c.leased > 0 then 'AWAITING_ACK'
        else 'IDLE'
    end as reason
from counted as c;

comment on view orbit.subscription_status is '订阅运行状态';
comment on column orbit.subscription_status.namespace is '命名空间名称';
comment on column orbit.subscription_status.namespace_id is '命名空间标识';
comment on column orbit.subscription_status.subscription_id is '订阅标识';
comment on column orbit.subscription_status.name is '订阅名称';
comment on column orbit.subscription_status.queue is '队列名称';
comment on column orbit.subscription_status.queue_id is '队列标识';
comment on column orbit.subscription_status.owner_credential_id is '所属凭据标识';
comment on column orbit.subscription_status.legacy is '是否历史占位订阅';
comment on column orbit.subscription_status.status is '订阅状态';
comment on column orbit.subscription_status.revision is '配置版本';
comment on column orbit.subscription_status.last_sequence is '最新已提交结果序号';
comment on column orbit.subscription_status.retained_from_sequence is '仍保留的最小结果序号';
comment on column orbit.subscription_status.cursor_sequence is '已扫描位置，不是已确认位置';
comment on column orbit.subscription_status.lag is '距最新结果的序号数';
comment on column orbit.subscription_status.pending_count is '未确认投递数量';
comment on column orbit.subscription_status.max_pending is '未确认投递数量上限';
comment on column orbit.subscription_status.ready is '可立即领取的投递数量';
comment on column orbit.subscription_status.leased is '租约中的投递数量';
comment on column orbit.subscription_status.overdue is '租约已过期的投递数量';
comment on column orbit.subscription_status.expired is '预算用尽的投递数量';
comment on column orbit.subscription_status.next_available_at is '最早的重试时间，空表示没有';
comment on column orbit.subscription_status.unscanned_since is '最早未扫描结果的时间，空表示没有';
comment on column orbit.subscription_status.last_claimed_at is '最近一次领取时间，空表示没有';
comment on column orbit.subscription_status.due is '领取时是否有可做的工作';
comment on column orbit.subscription_status.reason is '停滞原因，空表示正在推进';
