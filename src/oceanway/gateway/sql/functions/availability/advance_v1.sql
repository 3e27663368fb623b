-- Purpose: advances chains, all or none: each by one statement with its only event (TX-15, APP-16). Items are parallel
--   arrays; an empty evidence or conflict fact stands for none. A statement that is there already changes nothing and its
--   new envelope is left out. One call may advance one chain several times.
-- Locks: the pointers in order of chain and version; the delivery set, shared.
-- Errors: OW001 evidence known with other content; OW002 a chain has another statement of this version, or is elsewhere;
--   OW003 something does not belong together; OW004 an attempt is not bound; what `seapost.outbox_append_v1` raises.
-- Returns: how many are new.
create or replace function gateway.availability_advance_v1(
    p_snapshots bytea[], p_evidence bytea[], p_conflicts bytea[], p_events bytea[]
)
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item record;
    v_envelopes bytea[] := '{}';
begin
    if cardinality(p_snapshots)
        <> any (array[cardinality(p_evidence), cardinality(p_conflicts), cardinality(p_events)]) then
        raise exception using errcode = 'OW003', message = 'each statement has one event, and evidence or none';
    end if;
    for v_item in
        select i.snapshot, nullif(i.evidence, '') as evidence, nullif(i.conflict, '') as conflict, i.event
        from unnest(p_snapshots, p_evidence, p_conflicts, p_events) as i (snapshot, evidence, conflict, event)
        cross join lateral (select convert_from(i.snapshot, 'UTF8')::jsonb) as s (value)
        order by s.value ->> 'executionAttemptId', s.value ->> 'gatewayDeploymentId', s.value ->> 'providerEvidenceKind',
            s.value ->> 'evidenceDimensionKey',
            (s.value ->> 'gatewayEvidenceAvailabilitySnapshotStateVersion')::bigint
    loop
        if gateway.availability_write(v_item.snapshot, v_item.evidence, v_item.conflict, v_item.event) then
            v_envelopes := v_envelopes || v_item.event;
        end if;
    end loop;
    if cardinality(v_envelopes) > 0 then
        perform seapost.outbox_append_v1(v_envelopes);
    end if;
    return cardinality(v_envelopes);
end $$;
