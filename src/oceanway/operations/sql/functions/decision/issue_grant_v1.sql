-- Purpose: registers the one grant of a chain before its token leaves (SEC-15); the same grant again changes nothing.
-- Locks: the primary key.
-- Errors: OW001 the chain has another grant, or the identifier belongs to another one.
create or replace function operations.decision_issue_grant_v1(
    p_chain_id text, p_grant_jti text, p_grant_digest text, p_expires_at timestamptz
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into operations.grant_issued (grant_jti, chain_id, grant_digest, expires_at)
    values (p_grant_jti, p_chain_id, p_grant_digest, p_expires_at)
    on conflict do nothing;
    if not found then
        perform from operations.grant_issued as g
        where g.grant_jti = p_grant_jti and g.chain_id = p_chain_id and g.grant_digest = p_grant_digest;
        if not found then
            raise exception using errcode = 'OW001', message = 'the chain has another grant';
        end if;
    end if;
end $$;
