-- Purpose: at guard level strict, proves at commit that an event has exactly its mandatory deliveries (APP-05). Fires for
-- new events and for new deliveries.
-- Locks: none.
-- Errors: SP007.
create or replace function seapost.guard_delivery_set_complete()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_event record;
    v_owed int[];
    v_present int[];
begin
    select e.definition_id, e.event_type, e.schema_version into v_event
    from seapost.event as e where e.event_id = new.event_id;
    select array_agg(m.member_id order by m.member_id) into v_owed
    from seapost.delivery_set_member as m
    where m.definition_id = v_event.definition_id and m.event_type = v_event.event_type
      and m.schema_version = v_event.schema_version and m.mandatory;
    select array_agg(d.member_id order by d.member_id) into v_present
    from seapost.delivery as d where d.event_id = new.event_id;
    if v_owed is distinct from v_present then
        raise exception using errcode = 'SP007',
            message = 'the deliveries of an event are not exactly its mandatory members', detail = 'event ' || new.event_id;
    end if;
    return null;
end $$;
