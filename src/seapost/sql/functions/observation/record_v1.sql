-- Purpose: in the transaction that applies observations to a version, passes the gate of the version and writes their receipts.
-- Locks: those of projection_enter; the receipts, in order.
-- Errors: those of projection_enter; SP013 an observation is not known with this digest; 23505 it has a receipt.
create or replace function seapost.observation_record_v1(p_name text, p_version text, p_observation_ids uuid[], p_digests bytea[])
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_rows bigint;
begin
    perform seapost.projection_enter(p_name, p_version, null, '{}');
    insert into seapost.observation_receipt (projection_name, projection_version, observation_id, observation_digest, applied_at)
    select p_name, p_version, u.observation_id, u.digest, now()
    from unnest(p_observation_ids, p_digests) as u (observation_id, digest)
    join seapost.accepted_observation as o on o.observation_id = u.observation_id and o.digest = u.digest and o.projection_name = p_name
    order by u.observation_id;
    get diagnostics v_rows = row_count;
    if v_rows <> cardinality(p_observation_ids) then
        raise exception using errcode = 'SP013', message = 'an observation is not known here with this digest';
    end if;
end $$;
