-- Purpose: whether a text is a snapshot of schema version 1 in its one layout (SRC-12, SRC-13, SRC-18), and of this event.
-- The result behind the head must be one JSON value; ->> is not used, because it fails on \u0000. It runs under the
-- stream lock, so only what varies is matched by a pattern, and only in front of the result, however long that is.
-- Locks: none.
-- Errors: 22P02 the result is no JSON.
create or replace function orbit.guard_snapshot_v1_valid(p_snapshot_json text, p_type text, p_task_id text, p_queue_id text)
returns boolean
language plpgsql
immutable
as $$
declare
    v_start text := '{"schema_version":1,"task_id":"' || p_task_id || '","queue_id":"' || p_queue_id
        || '","state":"' || substr(p_type, 6) || '","revision":';
    v_rest text := substring(substr(p_snapshot_json, length(v_start) + 1, 200) from
        '^[1-9][0-9]*,"effect_uncertain":(?:true|false),"current_attempt_id":(?:null|"[^"\\]+"),"result":');
    v_head integer := length(v_start) + length(v_rest);
begin
    if v_rest is null or right(p_snapshot_json, 1) <> '}' or not starts_with(p_snapshot_json, v_start)
        or strpos(p_task_id || p_queue_id, '"') > 0 or strpos(p_task_id || p_queue_id, '\') > 0 then
        return false;
    end if;
    perform substr(p_snapshot_json, v_head + 1, length(p_snapshot_json) - v_head - 1)::json;
    return true;
end $$;
