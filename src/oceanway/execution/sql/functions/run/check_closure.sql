-- Purpose: that closure fact and attempt set belong together and to the admission of the run, and that the set is exactly
--   the attempts stored; the caller holds the run, so none can follow (APP-19, APP-20).
-- Locks: none.
-- Errors: OW002 the stored attempts are others; OW003 the documents do not belong together.
create or replace function execution.run_check_closure(p_set jsonb, p_fact jsonb, p_admission jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from unnest(array['tenantKind', 'tenantId', 'workspaceId', 'projectId', 'billingAccountId',
            'billingReservationId', 'runId', 'runAdmissionManifestRef', 'runAdmissionManifestSchemaVersion',
            'runAdmissionManifestDigestAlgorithmVersion', 'runAdmissionManifestDigest']) as f (field)
        where p_fact -> f.field is distinct from p_admission -> f.field)
        or exists (
            select from unnest(array['runId', 'attemptSetManifestRef', 'attemptSetManifestSchemaVersion',
                'attemptSetManifestDigestAlgorithmVersion', 'attemptSetManifestDigest', 'attemptCount']) as f (field)
            where p_fact -> f.field is distinct from p_set -> f.field) then
        raise exception using errcode = 'OW003', message = 'closure, attempt set and admission do not belong together';
    end if;
    if p_set -> 'attempts' is distinct from execution.run_attempts(p_fact ->> 'runId') then
        raise exception using errcode = 'OW002', message = 'the attempt set is not that of the run any more';
    end if;
end $$;
