-- Purpose: records that two claims about how an attempt ended exclude each other; until the repair its reads answer
--   `conflicting` (REF-21). The same fact again, while it is open, changes nothing.
-- Locks: the attempt.
-- Errors: OW001 another conflict of the attempt is open, or this one was repaired; OW004 no such attempt.
create or replace function execution.eligibility_declare_conflict_v1(p_document bytea)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_document, 'UTF8')::jsonb;
    v_subject constant text := v_fact ->> 'executionAttemptId';
begin
    perform from execution.attempt as p where p.execution_attempt_id = v_subject for no key update;
    if not found then
        raise exception using errcode = 'OW004', message = 'there is no such attempt';
    end if;
    insert into execution.eligibility_conflict (execution_eligibility_conflict_fact_ref, execution_attempt_id, digest, document)
    values (v_fact ->> 'executionEligibilityConflictFactRef', v_subject, v_fact ->> 'executionEligibilityConflictFactDigest', p_document)
    on conflict do nothing;
    if not found and not exists (
        select from execution.eligibility_conflict as c
        where c.execution_attempt_id = v_subject and c.repaired_at is null and c.digest = v_fact ->> 'executionEligibilityConflictFactDigest') then
        raise exception using errcode = 'OW001', message = 'another conflict of the attempt is open, or this one was repaired';
    end if;
end $$;
