-- Purpose: who may do what, current truth. Runtime roles hold EXECUTE on functions, the auditor SELECT; PUBLIC holds
-- nothing. Run after every change of functions or views.
revoke all on schema metering from public;
revoke all on all tables in schema metering from public, oceanway_metering_service, oceanway_metering_consumer,
    oceanway_metering_reader, oceanway_auditor;
revoke all on all sequences in schema metering from public, oceanway_metering_service, oceanway_metering_consumer,
    oceanway_metering_reader, oceanway_auditor;
revoke all on all functions in schema metering from public, oceanway_metering_service, oceanway_metering_consumer,
    oceanway_metering_reader, oceanway_auditor;
grant usage on schema metering to oceanway_metering_service, oceanway_metering_consumer, oceanway_metering_reader,
    oceanway_auditor;
grant select on metering.schema_versions to oceanway_metering_service, oceanway_metering_consumer,
    oceanway_metering_reader, oceanway_auditor;

grant execute on function metering.input_lock_v1, metering.input_advance_v1 to oceanway_metering_consumer;

grant execute on function
    metering.work_claim_v1, metering.work_release_v1, metering.work_superseded_v1, metering.work_wait_v1,
    metering.work_block_v1, metering.eligibility_apply_v1, metering.cost_process_v1,
    metering.settlement_declare_conflict_v1, metering.settlement_repair_v1, metering.settlement_current_v1
    to oceanway_metering_service;

grant execute on function metering.settlement_read_v1, metering.settlement_current_v1, metering.validation_issue_v1
    to oceanway_metering_reader;

grant select on all tables in schema metering to oceanway_auditor;
