-- Purpose: records how attempts ended, all or none: the only fact of each with its only event (TX-13, APP-14, APP-15).
--   Items are parallel arrays; a fact that is there already changes nothing and its new envelope is left out.
-- Locks: the attempts in order; the delivery set, shared.
-- Errors: OW001 the attempt has another fact; OW003 a fact or event that does not fit; OW004 no such attempt; what
--   `seapost.outbox_append_v1` raises.
-- Returns: for each item in the order given, the stored fact, its event and whether it is new.
create or replace function execution.eligibility_finalize_v1(p_facts bytea[], p_events bytea[])
returns table (document bytea, finalized_event_id uuid, is_new boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_item record;
    v_new text[] := '{}';
    v_envelopes bytea[] := '{}';
begin
    if cardinality(p_facts) <> cardinality(p_events) then
        raise exception using errcode = 'OW003', message = 'each fact has one event';
    end if;
    for v_item in
        select i.fact, i.event, convert_from(i.fact, 'UTF8')::jsonb ->> 'executionAttemptId' as attempt_id
        from unnest(p_facts, p_events) as i (fact, event)
        order by 3
    loop
        if execution.eligibility_write(v_item.fact, v_item.event) then
            v_new := v_new || v_item.attempt_id;
            v_envelopes := v_envelopes || v_item.event;
        end if;
    end loop;
    if cardinality(v_envelopes) > 0 then
        perform seapost.outbox_append_v1(v_envelopes);
    end if;
    return query
    select e.document, e.finalized_event_id, e.execution_attempt_id = any (v_new)
    from unnest(p_facts) with ordinality as i (fact, position)
    join execution.eligibility_fact as e
        on e.execution_attempt_id = convert_from(i.fact, 'UTF8')::jsonb ->> 'executionAttemptId'
    order by i.position;
end $$;
