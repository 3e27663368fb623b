-- Purpose: the document of a frozen candidate, CutoverCandidate@1 (REF-54).
-- Locks: none.
-- Errors: none.
create or replace function seapost.projection_cutover_candidate(
    p_cutover seapost.projection_cutover, p_claim uuid, p_count bigint, p_set_digest text, p_rest bigint
)
returns bytea
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select seapost.canonical_json_v1(jsonb_build_object(
        'cutoverCandidateSchemaVersion', '1', 'projectionName', p_cutover.projection_name, 'shadowVersion', p_cutover.to_version,
        'members', jsonb_build_object('count', p_count, 'setDigest', p_set_digest),
        'definitionQuads', (select jsonb_agg(jsonb_build_object('deliverySetVersion', d.delivery_set_version,
                'deliverySetDefinitionSchemaVersion', d.definition_schema_version,
                'deliverySetDefinitionDigestAlgorithmVersion', d.digest_algorithm_version,
                'deliverySetDefinitionDigest', encode(d.definition_digest, 'hex')) order by d.definition_id)
            from seapost.delivery_set_version as d
            where d.status = 'active' or d.delivery_set_version = p_cutover.delivery_set_version),
        'expectedReceiptCoordinates', jsonb_build_object('count', p_count, 'setDigest', p_set_digest, 'missing', p_rest),
        'shadowClaimFencingToken', p_claim,
        'frozenAt', to_char(seapost.clock_now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')))
$$;
