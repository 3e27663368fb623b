-- Purpose: whether all these events are members of the frozen candidate of a switch: those that its version had folded, and the
-- rest that it lacked.
-- Locks: none.
-- Errors: none.
create or replace function seapost.projection_within_candidate(p_name text, p_version text, p_event_ids uuid[])
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select p_event_ids is not null and not exists (
        select from unnest(p_event_ids) as u (event_id)
        where not exists (select from seapost.projection_candidate_rest as r where r.projection_name = p_name and r.event_id = u.event_id)
          and not exists (select from seapost.inbox_receipt as i
              where i.consumer = (select v.receipt_key from seapost.projection_version as v
                  where v.projection_name = p_name and v.projection_version = p_version)
                and i.event_id = u.event_id))
$$;
