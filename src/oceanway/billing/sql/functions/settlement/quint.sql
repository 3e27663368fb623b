-- Purpose: the five fields by which objects carry a settlement input, from a watermark (section 0.2).
-- Locks: none.
-- Errors: none.
create or replace function billing.settlement_quint(p_row billing.settlement_inbox)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'settlementInputSnapshotRef', (p_row).settlement_input_snapshot_ref,
        'settlementInputSnapshotSchemaVersion', (p_row).settlement_input_snapshot_schema_version,
        'settlementInputSnapshotDigestAlgorithmVersion', (p_row).settlement_input_snapshot_digest_algorithm_version,
        'settlementInputSnapshotDigest', (p_row).settlement_input_snapshot_digest,
        'settlementInputStateVersion', (p_row).settlement_input_state_version)
$$;
