-- Purpose: of these events, those that a version supports and has no receipt of: what to feed it from another source (AMB-39).
-- Locks: none.
-- Errors: SP013 argument; SP030 the claim was taken over or paused.
create or replace function seapost.projection_missing_v1(
    p_name text, p_version text, p_token uuid, p_event_ids uuid[]
)
returns setof uuid
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_key text;
begin
    if cardinality(p_event_ids) > 10000 then
        raise exception using errcode = 'SP013', message = 'p_event_ids must have at most 10000 items';
    end if;
    select v.receipt_key into v_key from seapost.projection_version as v
    where v.projection_name = p_name and v.projection_version = p_version and v.claim_token = p_token;
    if not found then
        raise exception using errcode = 'SP030', message = 'the shadow claim was taken over or paused',
            detail = format('%s version %s', p_name, p_version);
    end if;
    return query
    select u.event_id from unnest(p_event_ids) as u (event_id)
    where not exists (select from seapost.inbox_receipt as i where i.consumer = v_key and i.event_id = u.event_id);
end $$;
