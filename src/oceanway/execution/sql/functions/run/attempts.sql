-- Purpose: the stored attempts of a run as the items of its attempt set manifest, in their order (REF-20).
-- Locks: none.
-- Errors: none.
create or replace function execution.run_attempts(p_run text)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
        'runStepId', a.run_step_id, 'executionAttemptId', a.execution_attempt_id,
        'attemptExecutionManifestRef', m.manifest -> 'attemptExecutionManifestRef',
        'attemptExecutionManifestSchemaVersion', m.manifest -> 'attemptExecutionManifestSchemaVersion',
        'attemptExecutionManifestDigestAlgorithmVersion', m.manifest -> 'attemptExecutionManifestDigestAlgorithmVersion',
        'attemptExecutionManifestDigest', m.manifest -> 'attemptExecutionManifestDigest')
        order by a.run_step_id, a.execution_attempt_id), '[]')
    from execution.attempt as a
    cross join lateral (select convert_from(a.document, 'UTF8')::jsonb) as m (manifest)
    where a.run_id = p_run;
$$;
