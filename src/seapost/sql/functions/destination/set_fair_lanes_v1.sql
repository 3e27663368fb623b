-- Purpose: decides over how many fair lanes new events of a destination are spread by their tenant (F23); 1 keeps one
-- queue. Events that wait keep their lane: claims go on looking at as many lanes as there ever were, because an append
-- in flight, or one with an old snapshot, may still fill them. No part of any delivery set; each change is audited.
-- Locks: the destination_setting row.
-- Errors: SP013 argument, or a destination of no registered delivery set.
create or replace function seapost.destination_set_fair_lanes_v1(p_destination text, p_fair_lanes int, p_actor text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_actor is null or length(p_actor) not between 1 and 200 or p_fair_lanes is null or p_fair_lanes not between 1 and 256 then
        raise exception using errcode = 'SP013', message = 'p_fair_lanes must be 1 to 256 and p_actor have 1 to 200 characters';
    end if;
    if not exists (select from seapost.delivery_set_member as m where m.destination = p_destination) then
        raise exception using errcode = 'SP013', message = 'p_destination must be in a registered delivery set';
    end if;
    insert into seapost.destination_setting as s (destination, fair_lanes, lanes_claimed, changed_at)
    select p_destination, p_fair_lanes, p_fair_lanes, seapost.clock_now()
    where p_fair_lanes > 1 or exists (select from seapost.destination_setting as k where k.destination = p_destination)
    on conflict (destination) do update
    set fair_lanes = excluded.fair_lanes, lanes_claimed = greatest(s.lanes_claimed, excluded.lanes_claimed),
        changed_at = excluded.changed_at
    where s.fair_lanes <> excluded.fair_lanes;
    if found then
        perform seapost.audit_append(p_actor, 'destination.fair_lanes', p_destination || '=' || p_fair_lanes, null);
    end if;
end $$;
