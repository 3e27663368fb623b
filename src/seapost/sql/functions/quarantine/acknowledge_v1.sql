-- Purpose: an operator has seen a quarantined delivery and may link a case; set once, audited, and the delivery stays
-- where it is (REF-08, RTY-06).
-- Locks: the delivery_quarantine row.
-- Errors: SP013 argument, SP020 acknowledged already, SP022 no such quarantine.
create or replace function seapost.quarantine_acknowledge_v1(p_event_id uuid, p_destination text, p_case_id text, p_actor text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_actor is null or length(p_actor) not between 1 and 200 or length(p_case_id) not between 1 and 200 then
        raise exception using errcode = 'SP013', message = 'p_actor and p_case_id must have 1 to 200 characters';
    end if;
    update seapost.delivery_quarantine as q set acknowledged_at = seapost.clock_now(), case_id = p_case_id
    where q.event_id = p_event_id and q.destination = p_destination;
    if not found then
        raise exception using errcode = 'SP022', message = 'there is no such quarantined delivery',
            detail = format('event %s, destination %s', p_event_id, p_destination);
    end if;
    perform seapost.audit_append(p_actor, 'quarantine.acknowledge', p_event_id || '/' || p_destination, null);
end $$;
