-- Purpose: the targeted receipt read: found, not_found, or conflicting when anything differs from what the caller expects
-- (RCP rules, AMB-44). There is no list and no latest.
-- Locks: none.
-- Errors: none.
create or replace function seapost.inbox_read_v1(
    p_consumer text, p_event_id uuid, p_event_digest bytea, p_receipt_ref text, p_receipt_digest bytea
)
returns table (result text, receipt_ref text, receipt_candidate bytea, committed_at timestamptz)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_stored seapost.inbox_receipt;
begin
    select i.* into v_stored from seapost.inbox_receipt as i where i.consumer = p_consumer and i.event_id = p_event_id;
    if not found then
        return query select 'not_found', null::text, null::bytea, null::timestamptz;
    elsif (v_stored.event_digest, v_stored.receipt_ref, v_stored.receipt_digest)
          is distinct from (p_event_digest, p_receipt_ref, p_receipt_digest) then
        return query select 'conflicting', null::text, null::bytea, null::timestamptz;
    else
        return query select 'found', v_stored.receipt_ref, v_stored.receipt_candidate, v_stored.committed_at;
    end if;
end $$;
