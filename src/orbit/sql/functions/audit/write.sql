-- Purpose: writes one audit row in the transaction of the action that it records (AUD-04). The detail is stored as the
-- caller wrote it; it holds no secret and no result body (AUD-03). Null credential: the system acted.
-- Locks: none.
-- Errors: none.
create or replace function orbit.audit_write(
    p_namespace_id text, p_credential_id text, p_action text, p_resource_type text, p_resource_id text, p_detail json
)
returns void
language plpgsql  -- its plan is kept; a sql function would be planned anew for each row
volatile
as $$
begin
    insert into orbit.audit_log (audit_id, namespace_id, credential_id, action, resource_type, resource_id, detail_json)
    values (orbit.id_new('audit'), p_namespace_id, p_credential_id, p_action, p_resource_type, p_resource_id, p_detail::text);
end $$;
