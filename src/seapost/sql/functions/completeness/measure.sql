-- Purpose: every input of a proof (ORD-05): both sources, unfinished mandatory deliveries, both anti-joins, gaps, affecting
-- quarantine, unsupported schemas, aggregates and the view's own tables. The caller holds one snapshot for all of it.
-- Locks: none.
-- Errors: SP012 the transaction is not REPEATABLE READ; SP013 the version is not known.
create or replace function seapost.completeness_measure(p_name text, p_version text)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_key text;
    v_source record;
    v_receipts record;
    v_aggregates record;
    v_observations record;
    v_is_bound boolean;
begin
    if current_setting('transaction_isolation') not in ('repeatable read', 'serializable') then
        raise exception using errcode = 'SP012', message = 'a proof needs one snapshot: REPEATABLE READ';
    end if;
    select v.receipt_key into v_key from seapost.projection_version as v
    where v.projection_name = p_name and v.projection_version = p_version and v.receipt_key is not null;
    if not found then
        raise exception using errcode = 'SP013', message = 'the projection version is not registered here with its receipts',
            detail = format('%s version %s', p_name, p_version);
    end if;
    v_is_bound := exists (select from seapost.projection_cutover as k where k.projection_name = p_name and k.to_version = p_version
        and k.candidate is not null and k.phase <> 'switched');
    select * into v_source from seapost.completeness_source(p_name, p_version);
    select * into v_receipts from seapost.completeness_receipts(v_key);
    select * into v_aggregates from seapost.completeness_aggregates(p_name, p_version, v_receipts.member_count);
    select count(*) as member_count, seapost.completeness_set_digest(count(*),
            sum(hash_record_extended(row (o.observation_id, o.digest), 1)::numeric), sum(hash_record_extended(row (o.observation_id, o.digest), 2)::numeric)) as set_digest,
        count(*) filter (where r.observation_id is null) as missing
    into v_observations
    from seapost.accepted_observation as o
    left join seapost.observation_receipt as r on r.projection_name = p_name and r.projection_version = p_version
     and r.observation_id = o.observation_id and r.observation_digest = o.digest
    where o.projection_name = p_name;
    return jsonb_build_object(
        'sources', jsonb_build_array(
            jsonb_build_object('kind', 'core_event', 'count', v_source.member_count, 'setDigest', v_source.set_digest),
            jsonb_build_object('kind', 'accepted_observation', 'count', v_observations.member_count, 'setDigest', v_observations.set_digest)),
        'receipts', jsonb_build_object('count', v_receipts.member_count, 'setDigest', v_receipts.set_digest),
        'aggregates', jsonb_build_object('count', v_aggregates.member_count, 'setDigest', v_aggregates.set_digest,
            'state', case when v_aggregates.is_consistent then 'consistent' else 'altered' end),
        'viewTables', seapost.completeness_tables(p_name, p_version),
        'unfinishedMandatoryDeliveries', case when v_is_bound then 0 else seapost.completeness_unfinished(p_name, p_version) end,
        'eventReceiptAntiJoin', case when (v_source.member_count, v_source.set_digest) = (v_receipts.member_count, v_receipts.set_digest) then 0
            else seapost.completeness_anti_join(p_name, p_version, v_key) end,
        'observationReceiptAntiJoin', v_observations.missing,
        'openGaps', seapost.projection_open_gaps(p_name, p_version),
        'affectingQuarantine', seapost.completeness_quarantined(p_name, v_key),
        'unsupportedSchema', seapost.completeness_unsupported(p_name, p_version));
end $$;
