-- Purpose: proves, in the caller's one snapshot, how complete a version of a projection is, and keeps the manifest (ORD-05,
-- ORD-10, SEC-19). `p_semantic` is what the semantic check found in the same snapshot: {id, version, digest, state,
-- resultDigest}. `p_rehash` reads every byte again. While a switch has frozen a candidate, the proof speaks of exactly that.
-- Locks: none.
-- Errors: SP012 not REPEATABLE READ; SP013 argument.
create or replace function seapost.completeness_prove_v1(p_name text, p_version text, p_semantic jsonb, p_rehash boolean)
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_inputs jsonb;
    v_judged record;
    v_candidate bytea;
    v_definition bytea;
    v_snapshot_id constant uuid := gen_random_uuid();
    v_moment constant timestamptz := seapost.clock_now();
    v_manifest bytea;
begin
    perform seapost.completeness_check_semantic(p_semantic);
    v_inputs := seapost.completeness_measure(p_name, p_version)
        || jsonb_build_object('semanticCheck', jsonb_build_object('state', p_semantic -> 'state', 'digest', p_semantic -> 'resultDigest'));
    if p_rehash then
        v_inputs := v_inputs || jsonb_build_object('rehashed', seapost.completeness_rehash(p_name, p_version,
            (select v.receipt_key from seapost.projection_version as v where v.projection_name = p_name and v.projection_version = p_version)));
    end if;
    select * into v_judged from seapost.completeness_judged(v_inputs);
    select sha256(k.candidate) into v_candidate from seapost.projection_cutover as k
    where k.projection_name = p_name and k.to_version = p_version and k.candidate is not null and k.phase <> 'switched';
    v_definition := seapost.completeness_definition_digest(p_name, p_version, p_semantic);
    v_manifest := seapost.canonical_json_v1(v_inputs || jsonb_build_object(
        'completenessProofManifestSchemaVersion', '1', 'snapshotId', v_snapshot_id,
        'evaluatedAt', to_char(v_moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'projectionName', p_name, 'projectionVersion', p_version,
        'queryDefinition', jsonb_build_object('id', 'seapost.completeness', 'version', '1', 'digest', encode(v_definition, 'hex')),
        'semanticDefinition', p_semantic - 'state' - 'resultDigest',
        'candidateDigest', coalesce(encode(v_candidate, 'hex'), 'none'), 'rehashed', coalesce(v_inputs -> 'rehashed', '"not_asked"'),
        'integrity', v_judged.integrity, 'result', v_judged.completeness));
    insert into seapost.completeness_snapshot (snapshot_id, evaluated_at, projection_name, projection_version, definition_digest,
        candidate_digest, result, manifest)
    values (v_snapshot_id, v_moment, p_name, p_version, v_definition, v_candidate, v_judged.completeness, v_manifest);
    return v_manifest;
end $$;
