-- Purpose: the streams: newest committed sequence and retained boundary of each namespace (JRN-03, JRN-20).
create view orbit.event_streams as
select l.namespace_id, orbit.stream_head(l.namespace_id) as last_sequence, l.retained_from_sequence, l.created_at,
    l.updated_at
from orbit.event_stream_locks as l;

comment on view orbit.event_streams is '命名空间结果流';
comment on column orbit.event_streams.namespace_id is '命名空间标识';
comment on column orbit.event_streams.last_sequence is '最新已提交结果序号';
comment on column orbit.event_streams.retained_from_sequence is '仍保留的最小结果序号，目前固定为 1';
comment on column orbit.event_streams.created_at is '创建时间';
comment on column orbit.event_streams.updated_at is '更新时间';
