-- Purpose: refuses a set of actions that is empty, holds one twice, or names one that does not exist (AUT-01, AUT-06).
-- Locks: none.
-- Errors: OB026.
create or replace function orbit.access_check_actions(p_actions text[])
returns void
language plpgsql
immutable
as $$
begin
    if p_actions is null or cardinality(p_actions) = 0
        or not p_actions <@ array['tasks:create', 'tasks:read', 'tasks:cancel', 'tasks:resolve', 'tasks:work',
            'events:manage', 'events:read', 'events:consume']
        or cardinality(p_actions) <> (select count(distinct a.action) from unnest(p_actions) as a (action)) then
        raise exception using errcode = 'OB026',
            message = 'actions must be one or more of tasks:create, tasks:read, tasks:cancel, tasks:resolve, tasks:work, '
                'events:manage, events:read, events:consume, each once';
    end if;
end $$;
