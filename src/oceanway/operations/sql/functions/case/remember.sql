-- Purpose: keeps an owner's answer with the question and the quad that it carried, so that a rebuild asks nobody (AMB-39).
-- Locks: none.
-- Errors: OW001 the owner answered the same question otherwise before.
create or replace function operations.case_remember(p_read jsonb, p_arguments bytea, p_answer bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into operations.owner_read_results (operation, purpose, arguments_sha256, object_ref, object_schema_version,
        object_digest_algorithm_version, object_digest, arguments, answer)
    values (p_read ->> 'operation', p_read ->> 'purpose', sha256(p_arguments), p_read ->> 'ref',
        p_read ->> 'schemaVersion', p_read ->> 'digestAlgorithmVersion', p_read ->> 'digest', p_arguments, p_answer)
    on conflict do nothing;
    if not found then
        perform from operations.owner_read_results as r
        where r.operation = p_read ->> 'operation' and r.purpose = p_read ->> 'purpose'
          and r.arguments_sha256 = sha256(p_arguments) and r.answer = p_answer;
        if not found then
            raise exception using errcode = 'OW001', message = 'the owner answered the same question otherwise before';
        end if;
    end if;
end $$;
