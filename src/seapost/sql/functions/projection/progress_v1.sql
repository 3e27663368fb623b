-- Purpose: the record of a rebuild: adds what a batch applied, keeps where the pass stands, and counts complete passes
-- (`p_cursor` null). After a pass that found nothing to do, a version that was being built becomes a shadow. A hint for speed
-- and for people; nothing is proved by it (ORD-04).
-- Locks: the projection_rebuild row, the version row.
-- Errors: SP030 the claim was taken over or paused.
create or replace function seapost.projection_progress_v1(
    p_name text, p_version text, p_token uuid, p_cursor uuid, p_applied bigint, p_expected bigint, p_is_caught_up boolean
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_state text;
begin
    select v.state into v_state from seapost.projection_version as v
    where v.projection_name = p_name and v.projection_version = p_version and v.claim_token = p_token for no key update;
    if not found then
        raise exception using errcode = 'SP030', message = 'the shadow claim was taken over or paused',
            detail = format('%s version %s', p_name, p_version);
    end if;
    update seapost.projection_rebuild as r
    set moved_at = seapost.clock_now(), cursor_event_id = p_cursor, applied_count = r.applied_count + p_applied,
        expected_count = coalesce(p_expected, r.expected_count), passes = r.passes + (p_cursor is null)::int,
        finished_at = case when p_is_caught_up then coalesce(r.finished_at, seapost.clock_now()) else r.finished_at end
    where r.projection_name = p_name and r.projection_version = p_version;
    if p_is_caught_up and v_state = 'building' then
        update seapost.projection_version as v set state = 'shadow'
        where v.projection_name = p_name and v.projection_version = p_version
        returning v.state into v_state;
    end if;
    return v_state;
end $$;
