-- Purpose: requires that an exposure fact says what the step of its dimension says of it.
-- Locks: none.
-- Errors: OW003 it does not.
create or replace function billing.exposure_check(p_exposure bytea, p_fact jsonb, p_dimension text, p_revision bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_exposure constant jsonb := convert_from(p_exposure, 'UTF8')::jsonb;
begin
    if p_exposure is not null
        and (v_exposure -> 'exposure', v_exposure #>> '{settlementEconomicIdentity,settlementDimensionId}',
                (v_exposure ->> 'stateRevision')::bigint)
            is distinct from (coalesce(p_fact -> 'exposure',
                    jsonb_build_object('state', 'resolved', 'caseRef', p_fact -> 'caseRef')), p_dimension, p_revision) then
        raise exception using errcode = 'OW003', message = 'the exposure is not what its step says';
    end if;
end $$;
