-- Purpose: names the first rule that the sorted arrays of a definition break: shape, order, duplicates, orphan members,
-- one consumer per destination (SET-02..07, SET-14); null when they keep all. Order is by Unicode code point (AMB-15).
-- Locks: none.
-- Errors: none.
create or replace function seapost.delivery_set_items_rule(p_events jsonb, p_members jsonb)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    c_event constant text[] := array['eventType', 'eventSchemaVersion'];
    c_member constant text[] := array['eventType', 'eventSchemaVersion', 'destination', 'consumerName',
        'expectedReceiptType', 'expectedReceiptSchemaVersion', 'projectionTarget', 'mandatory'];
begin
    if exists (select from jsonb_array_elements(p_events) as e
               where jsonb_typeof(e) <> 'object' or not e ?& c_event or e - c_event <> '{}'
                  or jsonb_typeof(e -> 'eventType') <> 'string' or jsonb_typeof(e -> 'eventSchemaVersion') <> 'string') then
        return 'each applicableEvents item has exactly eventType and eventSchemaVersion, both strings';
    end if;
    if exists (select from jsonb_array_elements(p_members) as m
               where jsonb_typeof(m) <> 'object' or not m ?& c_member or m - c_member <> '{}'
                  or jsonb_typeof(m -> 'mandatory') <> 'boolean'
                  or exists (select from jsonb_each(m - array['mandatory', 'projectionTarget']) as f
                             where jsonb_typeof(f.value) <> 'string' or length(f.value #>> '{}') not between 1 and 200)) then
        return 'a member has a missing, unknown or mistyped field';
    end if;
    if exists (select from jsonb_array_elements(p_events) as e
               where e ->> 'eventType' !~ '^[a-z][a-z0-9._-]*(@[0-9]+(\.[0-9]+)*)?$' or length(e ->> 'eventType') > 200
                  or e ->> 'eventSchemaVersion' !~ '^[0-9]+(\.[0-9]+)*$' or length(e ->> 'eventSchemaVersion') > 32) then
        return 'eventType must match [a-z][a-z0-9._-]* with an optional @version, eventSchemaVersion must be digits and dots';
    end if;
    if exists (select from jsonb_array_elements(p_members) as m
               where m ->> 'expectedReceiptType' !~ '^[A-Z][A-Za-z0-9]*$' or length(m ->> 'expectedReceiptType') > 100
                  or m ->> 'expectedReceiptSchemaVersion' !~ '^[0-9]+(\.[0-9]+)*$'
                  or length(m ->> 'expectedReceiptSchemaVersion') > 32) then
        return 'expectedReceiptType must match [A-Z][A-Za-z0-9]*, expectedReceiptSchemaVersion must be digits and dots';
    end if;
    if exists (select from jsonb_array_elements(p_members) as m
               where m ->> 'destination' !~ '^[a-z][a-z0-9_.-]*$' or length(m ->> 'destination') > 100
                  or m ->> 'consumerName' !~ '^[a-z][a-z0-9_.-]*$' or length(m ->> 'consumerName') > 100) then
        return 'destination and consumerName must match [a-z][a-z0-9_.-]*, at most 100 characters';
    end if;
    if exists (select from jsonb_array_elements(p_members) as m, lateral (select m -> 'projectionTarget' as t) as p
               where p.t <> '{"state": "not_applicable"}'
                 and not coalesce(jsonb_typeof(p.t) = 'object' and p.t ->> 'state' = 'required'
                          and jsonb_typeof(p.t -> 'projectionName') = 'string' and jsonb_typeof(p.t -> 'projectionVersion') = 'string'
                          and p.t ->> 'projectionName' ~ '^[a-z][a-z0-9_.-]*$' and length(p.t ->> 'projectionName') <= 100
                          and p.t ->> 'projectionVersion' ~ '^[0-9]+(\.[0-9]+)*$' and length(p.t ->> 'projectionVersion') <= 32
                          and p.t - array['state', 'projectionName', 'projectionVersion'] = '{}', false)) then
        return 'projectionTarget must be not_applicable, or required with projectionName and projectionVersion';
    end if;
    if exists (select from (
            select (e ->> 'eventType') collate "C" as k1, (e ->> 'eventSchemaVersion') collate "C" as k2,
                   lag((e ->> 'eventType') collate "C") over w as p1, lag((e ->> 'eventSchemaVersion') collate "C") over w as p2
            from jsonb_array_elements(p_events) with ordinality as u (e, n) window w as (order by n)) as s
        where (s.p1, s.p2) >= (s.k1, s.k2)) then
        return 'applicableEvents must be sorted by (eventType, eventSchemaVersion) without duplicates';
    end if;
    if exists (select from (
            select k, lag(k) over (order by n) as p
            from (select array[m ->> 'eventType', m ->> 'eventSchemaVersion', m ->> 'destination', m ->> 'consumerName']
                         collate "C" as k, n
                  from jsonb_array_elements(p_members) with ordinality as u (m, n)) as a) as s
        where s.p >= s.k) then
        return 'members must be sorted by (eventType, eventSchemaVersion, destination, consumerName) without duplicates';
    end if;
    if exists (select from jsonb_array_elements(p_members) as m
               where not exists (select from jsonb_array_elements(p_events) as e
                   where e ->> 'eventType' = m ->> 'eventType' and e ->> 'eventSchemaVersion' = m ->> 'eventSchemaVersion')) then
        return 'every member must belong to an applicable event';
    end if;
    if exists (select from jsonb_array_elements(p_members) as m
               group by m ->> 'eventType', m ->> 'eventSchemaVersion', m ->> 'destination' having count(*) > 1) then
        return 'one destination of an event may map to only one consumer';
    end if;
    return null;
end $$;
