-- Purpose: stores what became of a work; the caller has checked that the work may end so.
-- Locks: the primary key.
-- Errors: 23505 the work has a Finish, which the caller's lock and comparison prevent.
create or replace function billing.finalization_finish_write(p_finish bytea)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
    insert into billing.finalization_work_finish (billing_finalization_work_ref, outcome, digest, document)
    select d.finish ->> 'billingFinalizationWorkRef', d.finish #>> '{outcome,state}',
        d.finish ->> 'billingFinalizationWorkAttemptFinishedDigest', p_finish
    from (select convert_from(p_finish, 'UTF8')::jsonb as finish) as d
$$;
