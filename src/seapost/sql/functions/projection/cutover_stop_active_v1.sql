-- Purpose: once the candidate has all its receipts, ends the shadow claim and stops the version that is left: from the commit on
-- it applies nothing (its deliveries are answered "try again"), and what it was applying has ended (ORD-17, AMB-43).
-- Locks: the cutover row; the advisory locks "projection claim" of both versions, exclusive: call it with a lock_timeout.
-- Errors: SP032 wrong phase; SP033 members of the candidate have no receipt yet.
create or replace function seapost.projection_cutover_stop_active_v1(p_name text, p_token uuid)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_cutover seapost.projection_cutover;
    v_rest bigint;
begin
    v_cutover := seapost.projection_cutover_hold(p_name, p_token, array['catching_up', 'draining_active']);
    if v_cutover.phase = 'draining_active' then
        return;
    end if;
    perform pg_advisory_xact_lock(seapost.projection_claim_key(p_name, v_cutover.to_version));
    v_rest := seapost.projection_cutover_rest(p_name, v_cutover.to_version);
    if v_rest > 0 then
        raise exception using errcode = 'SP033', message = 'the version has not caught up to its border',
            detail = format('%s members of the candidate have no receipt', v_rest);
    end if;
    update seapost.projection_version as v set claim_token = null
    where v.projection_name = p_name and v.projection_version = v_cutover.to_version;
    update seapost.projection_cutover as c set phase = 'draining_active', phase_at = seapost.clock_now()
    where c.projection_name = p_name;
    perform pg_advisory_xact_lock(seapost.projection_claim_key(p_name, v_cutover.from_version));
end $$;
