-- Purpose: each namespace's head and retained boundary, for `orbit events status`. Sequences are committed and gapless, so
--   the number of retained results is exact without counting (F83).
-- Locks: none
-- Errors: none
create view orbit.stream_status as
select n.name as namespace, t.namespace_id, t.last_sequence, t.retained_from_sequence,
    t.last_sequence - t.retained_from_sequence + 1 as results
from orbit.event_streams as t
join orbit.namespaces as n on n.namespace_id = t.namespace_id;

comment on view orbit.stream_status is '命名空间结果流状态';
comment on column orbit.stream_status.namespace is '命名空间名称';
comment on column orbit.stream_status.namespace_id is '命名空间标识';
comment on column orbit.stream_status.last_sequence is '最新已提交结果序号';
comment on column orbit.stream_status.retained_from_sequence is '仍保留的最小结果序号';
comment on column orbit.stream_status.results is '保留的结果数量';
