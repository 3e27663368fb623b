"""The quads of billing, operations and the receipts, under the name by which other objects carry it (section 0.2).

A content-addressed class inherits its own quad from here too, so that a name is written once.
"""

from __future__ import annotations

from oceanway.contracts.base import Contract
from seapost.contracts.fields import Algorithm, Digest, Identifier, Version


class BillingFinalizationTriggerSnapshotQuad(Contract):
    """The identity of one billing finalization trigger snapshot."""

    billing_finalization_trigger_snapshot_ref: Identifier
    billing_finalization_trigger_snapshot_schema_version: Version
    billing_finalization_trigger_snapshot_digest_algorithm_version: Algorithm
    billing_finalization_trigger_snapshot_digest: Digest


class BillingFinalizationWorkQuad(Contract):
    """The identity of one billing finalization work."""

    billing_finalization_work_ref: Identifier
    billing_finalization_work_schema_version: Version
    billing_finalization_work_digest_algorithm_version: Algorithm
    billing_finalization_work_digest: Digest


class BillingFinalizationDecisionQuad(Contract):
    """The identity of one billing finalization decision."""

    billing_finalization_decision_ref: Identifier
    billing_finalization_decision_schema_version: Version
    billing_finalization_decision_digest_algorithm_version: Algorithm
    billing_finalization_decision_digest: Digest


class BillingFinalizationFactQuad(Contract):
    """The identity of one billing finalization fact."""

    billing_finalization_fact_ref: Identifier
    billing_finalization_fact_schema_version: Version
    billing_finalization_fact_digest_algorithm_version: Algorithm
    billing_finalization_fact_digest: Digest


class BillingFinalizationWorkAttemptFinishedQuad(Contract):
    """The identity of one billing finalization work attempt finished."""

    billing_finalization_work_attempt_finished_ref: Identifier
    billing_finalization_work_attempt_finished_schema_version: Version
    billing_finalization_work_attempt_finished_digest_algorithm_version: Algorithm
    billing_finalization_work_attempt_finished_digest: Digest


class FinalizationCaseIdentityReservationQuad(Contract):
    """The identity of one finalization case identity reservation."""

    finalization_case_identity_reservation_ref: Identifier
    finalization_case_identity_reservation_schema_version: Version
    finalization_case_identity_reservation_digest_algorithm_version: Algorithm
    finalization_case_identity_reservation_digest: Digest


class FinalizationReconciliationResolutionAppliedQuad(Contract):
    """The identity of one finalization reconciliation resolution applied."""

    finalization_reconciliation_resolution_applied_ref: Identifier
    finalization_reconciliation_resolution_applied_schema_version: Version
    finalization_reconciliation_resolution_applied_digest_algorithm_version: Algorithm
    finalization_reconciliation_resolution_applied_digest: Digest


class BillingSettlementCatchUpWorkQuad(Contract):
    """The identity of one billing settlement catch up work."""

    billing_settlement_catch_up_work_ref: Identifier
    billing_settlement_catch_up_work_schema_version: Version
    billing_settlement_catch_up_work_digest_algorithm_version: Algorithm
    billing_settlement_catch_up_work_digest: Digest


class BillingSettlementCatchUpWorkAttemptFinishedQuad(Contract):
    """The identity of one billing settlement catch up work attempt finished."""

    billing_settlement_catch_up_work_attempt_finished_ref: Identifier
    billing_settlement_catch_up_work_attempt_finished_schema_version: Version
    billing_settlement_catch_up_work_attempt_finished_digest_algorithm_version: Algorithm
    billing_settlement_catch_up_work_attempt_finished_digest: Digest


class BillingSettlementCatchUpWorkAttemptBlockedQuad(Contract):
    """The identity of one billing settlement catch up work attempt blocked."""

    billing_settlement_catch_up_work_attempt_blocked_ref: Identifier
    billing_settlement_catch_up_work_attempt_blocked_schema_version: Version
    billing_settlement_catch_up_work_attempt_blocked_digest_algorithm_version: Algorithm
    billing_settlement_catch_up_work_attempt_blocked_digest: Digest


class SuccessorBillingSettlementCatchUpWorkQuad(Contract):
    """The identity of one successor billing settlement catch up work."""

    successor_billing_settlement_catch_up_work_ref: Identifier
    successor_billing_settlement_catch_up_work_schema_version: Version
    successor_billing_settlement_catch_up_work_digest_algorithm_version: Algorithm
    successor_billing_settlement_catch_up_work_digest: Digest


class SettlementTransitionQuad(Contract):
    """The identity of one settlement transition."""

    settlement_transition_ref: Identifier
    settlement_transition_schema_version: Version
    settlement_transition_digest_algorithm_version: Algorithm
    settlement_transition_digest: Digest


class SettlementConsumptionQuad(Contract):
    """The identity of one settlement consumption."""

    settlement_consumption_ref: Identifier
    settlement_consumption_schema_version: Version
    settlement_consumption_digest_algorithm_version: Algorithm
    settlement_consumption_digest: Digest


class LateSettlementExposureQuad(Contract):
    """The identity of one late settlement exposure."""

    late_settlement_exposure_ref: Identifier
    late_settlement_exposure_schema_version: Version
    late_settlement_exposure_digest_algorithm_version: Algorithm
    late_settlement_exposure_digest: Digest


class LateSettlementCommandResultQuad(Contract):
    """The identity of one late settlement command result."""

    late_settlement_command_result_ref: Identifier
    late_settlement_command_result_schema_version: Version
    late_settlement_command_result_digest_algorithm_version: Algorithm
    late_settlement_command_result_digest: Digest


class FinalizationReconciliationRequestQuad(Contract):
    """The identity of one finalization reconciliation request."""

    finalization_reconciliation_request_ref: Identifier
    finalization_reconciliation_request_schema_version: Version
    finalization_reconciliation_request_digest_algorithm_version: Algorithm
    finalization_reconciliation_request_digest: Digest


class FinalizationReconciliationCandidateQuad(Contract):
    """The identity of one finalization reconciliation candidate."""

    finalization_reconciliation_candidate_ref: Identifier
    finalization_reconciliation_candidate_schema_version: Version
    finalization_reconciliation_candidate_digest_algorithm_version: Algorithm
    finalization_reconciliation_candidate_digest: Digest


class FinalizationReconciliationDecisionQuad(Contract):
    """The identity of one finalization reconciliation decision."""

    finalization_reconciliation_decision_ref: Identifier
    finalization_reconciliation_decision_schema_version: Version
    finalization_reconciliation_decision_digest_algorithm_version: Algorithm
    finalization_reconciliation_decision_digest: Digest


class FinalizationReconciliationGrantQuad(Contract):
    """The identity of one finalization reconciliation grant."""

    finalization_reconciliation_grant_ref: Identifier
    finalization_reconciliation_grant_schema_version: Version
    finalization_reconciliation_grant_digest_algorithm_version: Algorithm
    finalization_reconciliation_grant_digest: Digest


class LateSettlementCommandQuad(Contract):
    """The identity of one late settlement command."""

    late_settlement_command_ref: Identifier
    late_settlement_command_schema_version: Version
    late_settlement_command_digest_algorithm_version: Algorithm
    late_settlement_command_digest: Digest


class LateSettlementGrantQuad(Contract):
    """The identity of one late settlement grant."""

    late_settlement_grant_ref: Identifier
    late_settlement_grant_schema_version: Version
    late_settlement_grant_digest_algorithm_version: Algorithm
    late_settlement_grant_digest: Digest


class OperationsProjectionAppliedReceiptQuad(Contract):
    """The identity of one operations projection applied receipt."""

    operations_projection_applied_receipt_ref: Identifier
    operations_projection_applied_receipt_schema_version: Version
    operations_projection_applied_receipt_digest_algorithm_version: Algorithm
    operations_projection_applied_receipt_digest: Digest


class MeteringInputProcessorConsumerReceiptQuad(Contract):
    """The identity of one metering input processor consumer receipt."""

    metering_input_processor_consumer_receipt_ref: Identifier
    metering_input_processor_consumer_receipt_schema_version: Version
    metering_input_processor_consumer_receipt_digest_algorithm_version: Algorithm
    metering_input_processor_consumer_receipt_digest: Digest


class BillingFinalizationCoordinatorConsumerReceiptQuad(Contract):
    """The identity of one billing finalization coordinator consumer receipt."""

    billing_finalization_coordinator_consumer_receipt_ref: Identifier
    billing_finalization_coordinator_consumer_receipt_schema_version: Version
    billing_finalization_coordinator_consumer_receipt_digest_algorithm_version: Algorithm
    billing_finalization_coordinator_consumer_receipt_digest: Digest


class BillingSettlementCatchUpConsumerReceiptQuad(Contract):
    """The identity of one billing settlement catch up consumer receipt."""

    billing_settlement_catch_up_consumer_receipt_ref: Identifier
    billing_settlement_catch_up_consumer_receipt_schema_version: Version
    billing_settlement_catch_up_consumer_receipt_digest_algorithm_version: Algorithm
    billing_settlement_catch_up_consumer_receipt_digest: Digest


class PendingFinalizationCaseSuccessorQuad(Contract):
    """The identity of one pending finalization case successor."""

    pending_finalization_case_successor_ref: Identifier
    pending_finalization_case_successor_schema_version: Version
    pending_finalization_case_successor_digest_algorithm_version: Algorithm
    pending_finalization_case_successor_digest: Digest


class PredecessorFinalizationCaseIdentityReservationQuad(Contract):
    """The identity of the case identity reservation of the generation before."""

    predecessor_finalization_case_identity_reservation_ref: Identifier
    predecessor_finalization_case_identity_reservation_schema_version: Version
    predecessor_finalization_case_identity_reservation_digest_algorithm_version: Algorithm
    predecessor_finalization_case_identity_reservation_digest: Digest


class TriggeringBillingFinalizationWorkQuad(Contract):
    """The identity of the billing finalization work that led to a case."""

    triggering_billing_finalization_work_ref: Identifier
    triggering_billing_finalization_work_schema_version: Version
    triggering_billing_finalization_work_digest_algorithm_version: Algorithm
    triggering_billing_finalization_work_digest: Digest


class FinalizationReconciliationApprovalQuad(Contract):
    """The identity of one finalization reconciliation approval."""

    finalization_reconciliation_approval_ref: Identifier
    finalization_reconciliation_approval_schema_version: Version
    finalization_reconciliation_approval_digest_algorithm_version: Algorithm
    finalization_reconciliation_approval_digest: Digest
