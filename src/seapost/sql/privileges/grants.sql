-- Purpose: who may do what, current truth. Runtime roles hold EXECUTE on functions and SELECT on views, never a right on
-- a table; PUBLIC holds nothing. Run after every change of functions or views.
revoke all on schema seapost from public;
revoke all on all tables in schema seapost from public, seapost_producer, seapost_dispatcher, seapost_consumer, seapost_operator, seapost_auditor, seapost_verifier;
revoke all on all sequences in schema seapost from public, seapost_producer, seapost_dispatcher, seapost_consumer, seapost_operator, seapost_auditor, seapost_verifier;
revoke all on all functions in schema seapost from public, seapost_producer, seapost_dispatcher, seapost_consumer, seapost_operator, seapost_auditor, seapost_verifier;
grant usage on schema seapost to seapost_producer, seapost_dispatcher, seapost_consumer, seapost_operator, seapost_auditor, seapost_verifier;
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
grant execute on function seapost.projection_meet_v2, seapost.projection_feed_v1, seapost.projection_missing_v1,
    seapost.projection_accept_v1, seapost.projection_progress_v1, seapost.projection_stall_v1,
    seapost.projection_expected_v1, seapost.projection_claim_v1, seapost.projection_pause_v1 to seapost_consumer;
grant execute on function seapost.projection_register_v1, seapost.projection_register_v2, seapost.projection_pause_v1
    to seapost_operator;
grant execute on function seapost.backpressure_show_v1 to seapost_dispatcher, seapost_operator, seapost_auditor;
grant select on seapost.delivery_set_versions, seapost.delivery_set_members, seapost.outbox_events,
    seapost.outbox_deliveries, seapost.outbox_delivery_attempt_starts, seapost.outbox_delivery_attempt_finishes,
    seapost.outbox_quarantine, seapost.destination_status, seapost.destination_settings, seapost.audit_records,
    seapost.schema_versions
    to seapost_operator, seapost_auditor;
grant select on seapost.audit_places, seapost.guard_levels, seapost.inbox_receipts, seapost.projection_versions,
    seapost.projection_aggregates, seapost.projection_gaps, seapost.projection_rebuilds to seapost_operator, seapost_auditor;
grant select on seapost.projection_versions, seapost.projection_rebuilds to seapost_consumer;

-- Projections side by side. Whoever registers a version owns the tables of its view, so the watch on them is his to set up.
grant execute on function
    seapost.projection_cutover_begin_v1, seapost.projection_cutover_freeze_v1, seapost.projection_cutover_stop_active_v1,
    seapost.projection_cutover_switch_v1, seapost.projection_cutover_activated_v1, seapost.projection_cutover_finish_v1,
    seapost.projection_cutover_abandon_v1, seapost.projection_retire_v1, seapost.completeness_watch_v1, seapost.completeness_watched
    to seapost_operator;
grant execute on function seapost.projection_current, seapost.projection_applied_v1
    to seapost_producer, seapost_consumer, seapost_operator, seapost_auditor, seapost_verifier;
grant execute on function seapost.completeness_prove_v1 to seapost_verifier;
grant execute on function seapost.completeness_query_v1 to seapost_verifier, seapost_operator, seapost_auditor;
grant execute on function seapost.observation_accept_v1, seapost.observation_feed_v1, seapost.observation_record_v1 to seapost_consumer;
grant select on seapost.projection_tables, seapost.projection_switches, seapost.completeness_snapshots
    to seapost_operator, seapost_auditor;
grant select on seapost.projection_versions, seapost.projection_switches, seapost.completeness_snapshots, seapost.projection_tables
    to seapost_verifier;
grant select on seapost.schema_versions to seapost_verifier;
grant select on seapost.projection_switches to seapost_consumer;
