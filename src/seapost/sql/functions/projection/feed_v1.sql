-- Purpose: the next events of the hot source for a version that has no receipt of them, in the order of their identifiers
-- (AMB-39). Events that a delivery will bring to this very version are left to it. `p_slot` of `p_slots` shares the aggregates
-- between feeders. A bounded claim gets what is inside its border, also what a delivery would bring: that one then finds the
-- receipt. An empty answer says nothing about completeness: an event may commit later with a lower identifier, so a pass is
-- repeated.
-- Locks: none.
-- Errors: SP013 argument; SP030 the claim was taken over or paused.
create or replace function seapost.projection_feed_v1(
    p_name text, p_version text, p_token uuid, p_after uuid, p_limit int, p_slot int, p_slots int, p_is_bounded boolean
)
returns table (event_id uuid, envelope bytea, digest bytea)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_key text;
begin
    if p_limit not between 1 and 10000 or p_slots not between 1 and 64 or p_slot not between 0 and p_slots - 1 then
        raise exception using errcode = 'SP013', message = 'p_limit must be 1 to 10000, p_slots 1 to 64, p_slot below it';
    end if;
    select v.receipt_key into v_key from seapost.projection_version as v
    where v.projection_name = p_name and v.projection_version = p_version and v.claim_token = p_token;
    if not found then
        raise exception using errcode = 'SP030', message = 'the shadow claim was taken over or paused',
            detail = format('%s version %s', p_name, p_version);
    end if;
    return query
    select s.event_id, s.envelope, s.digest from (
        (select e.event_id, e.envelope, e.digest from seapost.event as e
         where e.event_id > p_after
           and exists (select from seapost.projection_support as u where u.projection_name = p_name
               and u.projection_version = p_version and u.event_type = e.event_type and u.schema_version = e.schema_version)
           and (p_slots = 1 or seapost.projection_slot(e.aggregate_kind, e.aggregate_id, p_slots) = p_slot)
           and (p_is_bounded or not exists (select from seapost.delivery_set_member as m
               where m.definition_id = e.definition_id and m.event_type = e.event_type and m.schema_version = e.schema_version
                 and m.mandatory and m.projection_name = p_name and m.projection_version = p_version))
           and not exists (select from seapost.inbox_receipt as i where i.consumer = v_key and i.event_id = e.event_id)
           and (not p_is_bounded or exists (select from seapost.projection_candidate_rest as r
               where r.projection_name = p_name and r.event_id = e.event_id))
         order by e.event_id limit p_limit)
        union all
        (select a.event_id, a.envelope, a.digest from seapost.accepted_event as a
         where a.event_id > p_after
           and exists (select from seapost.projection_support as u where u.projection_name = p_name
               and u.projection_version = p_version and u.event_type = a.event_type and u.schema_version = a.schema_version)
           and (p_slots = 1 or seapost.projection_slot(a.aggregate_kind, a.aggregate_id, p_slots) = p_slot)
           and not exists (select from seapost.inbox_receipt as i where i.consumer = v_key and i.event_id = a.event_id)
           and (not p_is_bounded or exists (select from seapost.projection_candidate_rest as r
               where r.projection_name = p_name and r.event_id = a.event_id))
         order by a.event_id limit p_limit)) as s
    order by s.event_id limit p_limit;
end $$;
