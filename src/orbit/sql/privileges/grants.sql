-- Purpose: who may do what, current truth. Runtime roles hold EXECUTE on functions and SELECT on views, never a right on
-- a table; PUBLIC holds nothing. Run after every change of functions or views.
revoke all on schema orbit from public;
revoke all on all tables in schema orbit from public, orbit_server, orbit_operator, orbit_auditor;
revoke all on all sequences in schema orbit from public, orbit_server, orbit_operator, orbit_auditor;
revoke all on all functions in schema orbit from public, orbit_server, orbit_operator, orbit_auditor;
grant usage on schema orbit to orbit_server, orbit_operator, orbit_auditor;
grant select on orbit.schema_migrations, orbit.schema_versions to orbit_server, orbit_operator, orbit_auditor;
grant execute on function orbit.stream_head to orbit_operator, orbit_auditor;  -- the view calls it as its reader
grant select on orbit.event_streams to orbit_operator, orbit_auditor;
grant execute on function orbit.history_journal_v1, orbit.history_subscriptions_v1, orbit.history_audit_v1
    to orbit_operator, orbit_auditor;  -- `orbit events export`
grant execute on function orbit.access_check_v1 to orbit_server;

grant execute on function
    orbit.access_bootstrap_v1, orbit.credential_issue_v1, orbit.credential_rotate_v1, orbit.credential_revoke_v1,
    orbit.queue_create_v1, orbit.quota_set_v1
    to orbit_operator;
grant execute on function orbit.readiness_v1 to orbit_server, orbit_operator;
grant select on orbit.subscription_status, orbit.stream_status to orbit_operator, orbit_auditor;  -- `orbit events status`

grant execute on function
    orbit.subscription_create_v1, orbit.subscription_get_v1, orbit.subscription_list_v1, orbit.subscription_pause_v1,
    orbit.subscription_resume_v1, orbit.subscription_hello_v1, orbit.delivery_list_v1, orbit.delivery_get_v1,
    orbit.delivery_retry_v1, orbit.delivery_claim_v1, orbit.delivery_acknowledge_v1, orbit.delivery_waiting_v1
    to orbit_server;

grant execute on function
    orbit.task_submit_v1, orbit.task_get_v1, orbit.task_claim_v1, orbit.task_cancel_v1, orbit.task_resolve_v1,
    orbit.attempt_heartbeat_v1, orbit.attempt_confirm_v1, orbit.attempt_expired_v1, orbit.attempt_recover_v1,
    orbit.journal_fence_v1
    to orbit_server;
grant execute on function orbit.attempt_expired_v1, orbit.attempt_recover_v1 to orbit_operator;  -- `orbit tasks recover`
