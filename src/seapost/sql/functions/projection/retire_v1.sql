-- Purpose: retires a version that drains: nothing targets it any more, and nobody can go back to it (REF-05, RET-11, AMB-42). The
-- other producers must have confirmed that they have nothing left for it: `p_confirmed` says whose word that is.
-- Locks: the advisory lock "projection claim" of the version, exclusive; the version row.
-- Errors: SP013 argument; SP033 something still refers to it, named in the detail.
create or replace function seapost.projection_retire_v1(p_name text, p_version text, p_confirmed text, p_actor text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_version seapost.projection_version;
    v_problem text;
begin
    perform seapost.projection_check_actor(p_actor);
    if p_confirmed is null or length(p_confirmed) not between 1 and 200 then
        raise exception using errcode = 'SP013', message = 'p_confirmed must have 1 to 200 characters';
    end if;
    perform pg_advisory_xact_lock(seapost.projection_claim_key(p_name, p_version));
    select v.* into v_version from seapost.projection_version as v
    where v.projection_name = p_name and v.projection_version = p_version for update;
    if v_version.state = 'retired' then
        return;
    end if;
    v_problem := case
        when v_version.state is distinct from 'draining' then format('the version is %s', coalesce(v_version.state, 'not registered'))
        when v_version.rollback_until > seapost.clock_now() then format('it can be gone back to until %s', v_version.rollback_until)
        when exists (select from seapost.projection_cutover as c where c.projection_name = p_name) then 'a switch of the projection is under way'
        when seapost.completeness_unfinished(p_name, p_version) > 0 then 'deliveries to it are not finished'
        when exists (select from seapost.delivery_quarantine as q
            join seapost.delivery as d on d.event_id = q.event_id and d.destination = q.destination
            join seapost.delivery_set_member as m on m.member_id = d.member_id
            where m.projection_name = p_name and m.projection_version = p_version and q.acknowledged_at is null) then 'deliveries to it are in quarantine'
        when exists (select from seapost.delivery_set_member as m join seapost.delivery_set_version as s on s.definition_id = m.definition_id
            where s.status = 'active' and m.projection_name = p_name and m.projection_version = p_version) then 'the active delivery set names it' end;
    if v_problem is not null then
        raise exception using errcode = 'SP033', message = 'the version cannot be retired', detail = v_problem;
    end if;
    update seapost.projection_version as v set state = 'retired', retired_at = seapost.clock_now(), claim_token = null
    where v.projection_name = p_name and v.projection_version = p_version;
    perform seapost.audit_append(p_actor, 'projection.retire', p_name || '@' || p_version || ' confirmed by ' || p_confirmed, null);
end $$;
