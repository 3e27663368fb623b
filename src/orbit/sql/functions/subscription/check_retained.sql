-- Purpose: refuses a position before the retained boundary; a position is exclusive, hence the + 1 (MIG-17, A-02).
--   Never replaced by a jump to what is left (MIG-15, ERR-02).
-- Locks: none
-- Errors: OB022 with cursor_sequence and retained_from_sequence (MIG-18)
create or replace function orbit.subscription_check_retained(p_position bigint, p_retained_from_sequence bigint)
returns void
language plpgsql
immutable
as $$
begin
    if p_position + 1 < p_retained_from_sequence then
        raise exception using errcode = 'OB022',
            message = format('position %s lies before the oldest retained result %s', p_position, p_retained_from_sequence),
            detail = format('{"cursor_sequence":%s,"retained_from_sequence":%s}', p_position, p_retained_from_sequence);
    end if;
end $$;
