-- Purpose: whether the last proof of a version still holds: in the caller's one snapshot, compares every input with those of the
-- manifest, and answers as ORD-11 to ORD-14 say. Reads only; says complete only where nothing changed.
-- Locks: none.
-- Errors: SP012 not REPEATABLE READ; SP013 argument.
create or replace function seapost.completeness_query_v1(p_name text, p_version text, p_semantic jsonb)
returns jsonb
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot seapost.completeness_snapshot;
    v_manifest jsonb;
    v_inputs jsonb;
    v_judged record;
    v_reason text;
begin
    select * into v_snapshot from seapost.completeness_snapshot as c
    where c.projection_name = p_name and c.projection_version = p_version and c.candidate_digest is null
    order by c.evaluated_at desc limit 1;
    if not found then
        v_reason := 'no_completed_snapshot';
    elsif p_semantic is null then
        v_reason := 'guard_unavailable';
    else
        perform seapost.completeness_check_semantic(p_semantic);
        if v_snapshot.definition_digest <> seapost.completeness_definition_digest(p_name, p_version, p_semantic) then
            v_reason := 'definition_not_comparable';
        end if;
    end if;
    if v_reason is not null then
        return jsonb_build_object('verificationState', 'unverified', 'completenessAsOf', null, 'integrity', null,
            'snapshotCurrency', 'unknown', 'projectionCompleteness', 'unknown', 'verificationReason', v_reason);
    end if;
    v_manifest := convert_from(v_snapshot.manifest, 'UTF8')::jsonb;
    v_inputs := seapost.completeness_measure(p_name, p_version)
        || jsonb_build_object('semanticCheck', jsonb_build_object('state', p_semantic -> 'state', 'digest', p_semantic -> 'resultDigest'));
    select * into v_judged from seapost.completeness_judged(v_inputs);
    return jsonb_build_object('verificationState', 'verified',
        'completenessAsOf', jsonb_build_object('snapshotId', v_snapshot.snapshot_id, 'evaluatedAt', v_manifest -> 'evaluatedAt'),
        'integrity', v_manifest -> 'integrity', 'verificationReason', null)
        || case when v_manifest @> v_inputs and v_inputs -> 'viewTables' = v_manifest -> 'viewTables' then
            jsonb_build_object('snapshotCurrency', 'verified_current', 'projectionCompleteness', v_manifest -> 'result')
        else jsonb_build_object('snapshotCurrency', 'stale',
            'projectionCompleteness', case when v_judged.completeness = 'partial_source_gap' then 'partial_source_gap' else 'unknown' end) end;
end $$;
