-- Purpose: who may do what, current truth. Runtime roles hold EXECUTE on functions and SELECT on views, never a right on
-- a table; PUBLIC holds nothing. Run after every change of functions or views.
revoke all on schema seapost from public;
revoke all on all tables in schema seapost from public, seapost_producer, seapost_dispatcher, seapost_consumer, seapost_operator, seapost_auditor;
revoke all on all sequences in schema seapost from public, seapost_producer, seapost_dispatcher, seapost_consumer, seapost_operator, seapost_auditor;
revoke all on all functions in schema seapost from public, seapost_producer, seapost_dispatcher, seapost_consumer, seapost_operator, seapost_auditor;
grant usage on schema seapost to seapost_producer, seapost_dispatcher, seapost_consumer, seapost_operator, seapost_auditor;
grant execute on function seapost.clock_now, seapost.destination_waiting
    to seapost_dispatcher, seapost_operator, seapost_auditor;  -- views call them as their reader

grant execute on function seapost.outbox_append_v1, seapost.canonical_json_v1 to seapost_producer;
grant select on seapost.delivery_set_versions, seapost.delivery_set_members, seapost.schema_versions to seapost_producer;

grant execute on function
    seapost.delivery_claim_v1, seapost.delivery_renew_v1, seapost.delivery_acknowledge_v1, seapost.delivery_retry_v1,
    seapost.delivery_quarantine_v1, seapost.delivery_recover_v1, seapost.dispatcher_sleep_v1, seapost.dispatcher_wake_v1
    to seapost_dispatcher;
grant select on seapost.delivery_set_versions, seapost.delivery_set_members, seapost.destination_status,
    seapost.schema_versions to seapost_dispatcher;

grant execute on function seapost.inbox_receive_v1, seapost.inbox_meet_v1, seapost.inbox_record_v1, seapost.inbox_read_v1,
    seapost.inbox_committed_at_v1, seapost.projection_meet_v1, seapost.projection_advance_v1, seapost.projection_wait_v1
    to seapost_consumer;
grant select on seapost.delivery_set_versions, seapost.delivery_set_members, seapost.schema_versions to seapost_consumer;

grant execute on function seapost.delivery_set_register_v1, seapost.delivery_set_activate_v1,
    seapost.destination_set_fair_lanes_v1, seapost.backpressure_set_v1, seapost.quarantine_acknowledge_v1 to seapost_operator;
grant execute on function seapost.projection_register_v1 to seapost_operator;
grant execute on function seapost.backpressure_show_v1 to seapost_dispatcher, seapost_operator, seapost_auditor;
grant select on seapost.delivery_set_versions, seapost.delivery_set_members, seapost.outbox_events,
    seapost.outbox_deliveries, seapost.outbox_delivery_attempt_starts, seapost.outbox_delivery_attempt_finishes,
    seapost.outbox_quarantine, seapost.destination_status, seapost.destination_settings, seapost.audit_records,
    seapost.schema_versions
    to seapost_operator, seapost_auditor;
grant select on seapost.audit_places, seapost.guard_levels, seapost.inbox_receipts, seapost.projection_versions,
    seapost.projection_aggregates, seapost.projection_gaps to seapost_operator, seapost_auditor;
