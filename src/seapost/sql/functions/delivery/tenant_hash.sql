-- Purpose: a number from 0 that depends on the tenant of an envelope only, its kind and id; fair lanes are cut from it.
-- One expression without settings, so that the planner inlines it: called, it would cost an append more than the hash.
-- Locks: none.
-- Errors: 22P02 or 22021 when the envelope is no JSON in UTF-8.
create or replace function seapost.delivery_tenant_hash(p_envelope bytea)
returns int
language sql
immutable
parallel safe
as $$
    select pg_catalog.jsonb_hash(
        (pg_catalog.convert_from(p_envelope, 'UTF8')::pg_catalog.jsonb operator(pg_catalog.->) 'tenant')
            operator(pg_catalog.-) '{workspaceId,projectId}'::pg_catalog.text[]) operator(pg_catalog.&) 2147483647
$$;
