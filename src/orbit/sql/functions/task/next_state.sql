-- Purpose: the outcome table of section 14, in one place for confirmation and recovery: a lost lease is a failure whose
--   effect is unknown (TSK-05, TSK-06, TSK-12).
-- Locks: none
-- Errors: none
create or replace function orbit.task_next_state(
    p_outcome text, p_effect text, p_retryable boolean, p_task orbit.tasks, out state text, out effect_uncertain boolean
)
language plpgsql
immutable
as $$
declare
    v_repeatable boolean := case p_effect when 'unknown' then p_task.effect_policy = 'safe' else p_retryable end;
begin
    state := case
        when p_outcome = 'succeeded' then 'succeeded'
        when p_effect = 'unknown' and not v_repeatable then 'needs_review'
        when v_repeatable and p_task.attempt_count < p_task.max_attempts then 'queued'
        else 'failed' end;
    effect_uncertain := p_outcome = 'failed' and p_effect = 'unknown' and state <> 'queued';
end $$;
