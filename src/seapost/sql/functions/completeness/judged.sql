-- Purpose: what the inputs of a proof say (ORD-05, ORD-13): the completeness of the projection, and the integrity of what was
-- looked at. A gap is certain where a revision is awaited or an event cannot be folded.
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_judged(p_inputs jsonb, out completeness text, out integrity text)
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_has_gap constant boolean := (p_inputs ->> 'openGaps')::bigint + (p_inputs ->> 'affectingQuarantine')::bigint
        + (p_inputs ->> 'unsupportedSchema')::bigint > 0;
    v_is_sound constant boolean := p_inputs #>> '{semanticCheck,state}' = 'passed' and p_inputs #>> '{aggregates,state}' = 'consistent'
        and not p_inputs -> 'viewTables' @> '[{"state": "altered"}]' and coalesce((p_inputs ->> 'rehashed')::bigint, 0) = 0;
begin
    integrity := case when v_is_sound and not v_has_gap then 'passed' else 'failed' end;
    completeness := case
        when v_has_gap then 'partial_source_gap'
        when v_is_sound and (p_inputs ->> 'unfinishedMandatoryDeliveries')::bigint + (p_inputs ->> 'eventReceiptAntiJoin')::bigint
             + (p_inputs ->> 'observationReceiptAntiJoin')::bigint = 0
             and p_inputs #> '{sources,0,setDigest}' = p_inputs #> '{receipts,setDigest}' then 'complete_for_supported_scope'
        else 'unknown' end;
end $$;
