-- Purpose: lets this transaction commit without waiting for its flush, where the session asks for it by
--   `orbit.commit = fenced`. Only a server sets that which keeps every answer back until `journal_fence_v1` has returned
--   (JRN-17, decision 0016): the locks of queue and stream go at the commit and not at the end of the flush.
-- Locks: none
-- Errors: none
create or replace function orbit.task_relax_commit()
returns void
language plpgsql
as $$
begin
    if current_setting('orbit.commit', true) = 'fenced' then
        perform set_config('synchronous_commit', 'off', true);
    end if;
end $$;
