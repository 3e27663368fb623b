-- Purpose: asks the gates of all destinations that these envelopes would go to, in one order, before anything is written.
-- Locks: see backpressure_admit.
-- Errors: SP006 invalid envelope, SP024 back-pressure.
create or replace function seapost.backpressure_admit_envelopes(p_envelopes bytea[], p_definition_id int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_owed record;
begin
    for v_owed in
        select m.destination, count(*)::int as deliveries
        from seapost.outbox_envelope_headers(p_envelopes) as h
        join seapost.delivery_set_member as m
          on m.definition_id = p_definition_id and m.event_type = h.event_type and m.schema_version = h.schema_version
         and m.mandatory
        join seapost.backpressure_limit as b on b.destination = m.destination and b.action <> 'off'
        group by m.destination order by m.destination
    loop
        perform seapost.backpressure_admit(v_owed.destination, v_owed.deliveries);
    end loop;
end $$;
