-- Purpose: the switch: checks the candidate again, writes the readiness proof, moves the pointer and the states, and activates
-- the delivery set that freezes the new version, all in this transaction (ORD-17, SET-30, SET-31, TX-37). Doing it twice changes
-- nothing. The former version goes on serving its own deliveries, and is fed, until `p_rollback` has passed.
-- Locks: the cutover row; the advisory locks "projection claim" of both versions and "delivery set", exclusive: call it with a
-- lock_timeout; the pointer.
-- Errors: SP013 argument; SP032 wrong phase; SP033 members without receipt, or no proof of exactly this candidate that says
-- complete; those of delivery_set_activate_v1.
create or replace function seapost.projection_cutover_switch_v1(
    p_name text, p_token uuid, p_manifest_digest bytea, p_rollback interval, p_actor text
)
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_cutover seapost.projection_cutover;
    v_problem text;
    v_proof bytea;
begin
    perform seapost.projection_check_actor(p_actor);
    if p_rollback is null or p_rollback not between interval '0' and interval '366 days' then
        raise exception using errcode = 'SP013', message = 'p_rollback must be 0 to 366 days';
    end if;
    v_cutover := seapost.projection_cutover_hold(p_name, p_token, array['draining_active', 'switched']);
    if v_cutover.phase = 'switched' then
        return v_cutover.readiness_proof;
    end if;
    perform pg_advisory_xact_lock(k.key) from (
        select unnest(array[seapost.projection_claim_key(p_name, v_cutover.from_version),
            seapost.projection_claim_key(p_name, v_cutover.to_version)]) as key order by 1) as k;
    v_problem := case
        when seapost.projection_cutover_rest(p_name, v_cutover.to_version) > 0 then 'members of the candidate have no receipt'
        when not exists (select from seapost.completeness_snapshot as s
            where s.projection_name = p_name and s.projection_version = v_cutover.to_version and s.manifest_digest = p_manifest_digest
              and s.candidate_digest = sha256(v_cutover.candidate) and s.result = 'complete_for_supported_scope'
              and s.evaluated_at >= v_cutover.phase_at)
            then 'there is no proof of this very candidate, made since the active version stopped, that says complete'
        else seapost.projection_definition_problem(p_name, v_cutover.to_version, v_cutover.delivery_set_version, v_cutover.definition_digest) end;
    if v_problem is not null then
        raise exception using errcode = 'SP033', message = 'the version cannot be switched to', detail = v_problem;
    end if;
    v_proof := seapost.canonical_json_v1(jsonb_build_object('cutoverReadinessProofSchemaVersion', '1',
        'projectionName', p_name, 'projectionVersion', v_cutover.to_version,
        'candidateDigest', encode(sha256(v_cutover.candidate), 'hex'), 'proofManifestDigest', encode(p_manifest_digest, 'hex'),
        'provenAt', to_char(seapost.clock_now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')));
    update seapost.projection_version as v set state = 'draining', rollback_until = seapost.clock_now() + p_rollback
    where v.projection_name = p_name and v.projection_version = v_cutover.from_version;
    update seapost.projection_version as v set state = 'active', rollback_until = null
    where v.projection_name = p_name and v.projection_version = v_cutover.to_version;
    update seapost.projection_pointer as p
    set projection_version = v_cutover.to_version, switched_at = seapost.clock_now(), readiness_proof_digest = sha256(v_proof)
    where p.projection_name = p_name;
    perform seapost.delivery_set_activate_v1(v_cutover.delivery_set_version, v_cutover.definition_digest, p_actor);
    update seapost.projection_cutover as c set phase = 'switched', phase_at = seapost.clock_now(), readiness_proof = v_proof
    where c.projection_name = p_name;
    delete from seapost.projection_candidate_rest as r where r.projection_name = p_name;
    perform seapost.audit_append(p_actor, 'projection.cutover.switch', p_name || '@' || v_cutover.to_version, sha256(v_proof));
    return v_proof;
end $$;
