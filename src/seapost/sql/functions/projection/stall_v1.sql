-- Purpose: remembers the event that the feed of a version cannot pass, and why; a claim that is started anew forgets it (F40).
-- Locks: the version row.
-- Errors: SP030 the claim was taken over or paused.
create or replace function seapost.projection_stall_v1(p_name text, p_version text, p_token uuid, p_event_id uuid, p_reason text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update seapost.projection_version as v
    set stalled_event_id = p_event_id, stalled_reason = left(p_reason, 200), stalled_at = seapost.clock_now()
    where v.projection_name = p_name and v.projection_version = p_version and v.claim_token = p_token;
    if not found then
        raise exception using errcode = 'SP030', message = 'the shadow claim was taken over or paused',
            detail = format('%s version %s', p_name, p_version);
    end if;
end $$;
