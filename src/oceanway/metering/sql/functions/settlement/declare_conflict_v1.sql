-- Purpose: records that two claims about a settlement input exclude each other; until the repair the dimension is answered
--   as conflicting (REF-49, AMB-30).
-- Locks: the pointer row.
-- Errors: OW001 another conflict of the dimension is open; OW004 the dimension has no settlement input.
create or replace function metering.settlement_declare_conflict_v1(p_dimension text, p_document bytea)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_document, 'UTF8')::jsonb;
begin
    perform from metering.settlement_pointer as p where p.settlement_dimension_id = p_dimension for no key update;
    if not found then
        raise exception using errcode = 'OW004', message = 'the dimension has no settlement input';
    end if;
    insert into metering.settlement_input_conflict (settlement_input_conflict_fact_ref, settlement_dimension_id, digest,
        document)
    values (v_fact ->> 'settlementInputConflictFactRef', p_dimension, v_fact ->> 'settlementInputConflictFactDigest',
        p_document)
    on conflict do nothing;
    if not found and not exists (
        select from metering.settlement_input_conflict as c
        where c.settlement_dimension_id = p_dimension and c.repaired_at is null
          and c.digest = v_fact ->> 'settlementInputConflictFactDigest') then
        raise exception using errcode = 'OW001', message = 'another conflict of the dimension is open, or it was repaired';
    end if;
end $$;
