"""The consumer of metering: both sources of an attempt's facts, one fence (MTR-01 to MTR-09).

Before the transaction the attempt's manifest is read from execution and compared with the event (AMB-35). In it, the
fence and the lane are locked, the event is compared with its watermark, and everything that follows from it is written
at once with the receipt (TX-17). Usage goes to the eligibility lane, cost to its own one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from oceanway.contracts.errors import OwnerConflict, Stale
from oceanway.contracts.events import AttemptEligibilityFinalized, GatewayEvidenceAvailabilityCurrentChanged
from oceanway.contracts.receipts.metering import MeteringInputProcessorConsumerReceipt
from oceanway.contracts.receipts.registry import RECEIPTS
from oceanway.metering import lanes, store
from oceanway.metering.documents import read
from oceanway.metering.manifests import KnownManifest, Manifests
from oceanway.metering.receipts import frozen_lane, receipt_of
from seapost.contracts.canonical import encode
from seapost.inbox.deciding import Arrived, DecidingInbox
from seapost.model.errors import Reject, Retry
from seapost.model.outcome import ErrorCode

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.reads.client import Reader
    from seapost.contracts.events import Event
    from seapost.contracts.receipts import Receipt
    from seapost.inbox.deciding import Deciding

CONSUMER: Final = "metering_input_processor_consumer"
DESTINATION: Final = "metering_input_processor"


class MeteringInbox(DecidingInbox):
    """Takes the events of a transaction by attempt and lane, so that two transactions never wait for each other."""

    @override
    def order(self, item: Arrived, /) -> tuple[object, ...]:
        """Attempt, lane, source and version; the worker locks lanes in the same order."""
        payload: Any = item.event
        attempt = payload.execution_attempt_id
        if isinstance(payload, GatewayEvidenceAvailabilityCurrentChanged):
            place = (payload.provider_evidence_kind, payload.gateway_deployment_id, payload.evidence_dimension_key)
            return (attempt, *place, payload.current_availability_state_version, item.received.event_id.int)
        return (attempt, lanes.ELIGIBILITY_SOURCE, "", "", 1, item.received.event_id.int)


def new_inbox() -> MeteringInbox:
    """The consumer without handlers: its name, its receipts and how they are compared."""
    return MeteringInbox(
        CONSUMER,
        destination=DESTINATION,
        receipt=MeteringInputProcessorConsumerReceipt,
        moment="committed_at",
        receipts=RECEIPTS,
    )


def build_inbox(reader: Reader) -> DecidingInbox:
    """The consumer that asks execution through this reader."""
    inbox = new_inbox()
    manifests = Manifests(reader)
    _ = inbox.consumer(AttemptEligibilityFinalized, prepare=manifests.for_eligibility)(accept)
    _ = inbox.consumer(GatewayEvidenceAvailabilityCurrentChanged, prepare=manifests.for_availability)(accept)
    return inbox


def accept(transaction: Connection[Any], event: Event, context: Deciding) -> Receipt:
    """Accept one event of either source; redelivery never comes here.

    Raises:
        Reject: another manifest than the attempt's, or another event of the same version (MTR-07).
        Retry: the lane moved although it was locked, which a repetition repairs.
    """
    _ = event
    known: KnownManifest = context.prepared
    envelope = read(context.envelope)
    source = lanes.source_of(envelope)
    try:
        marks, lane, work = store.lock(transaction, envelope=context.envelope, manifest=known.data)
        watermarks = [lanes.watermark_of(mark) for mark in marks]
        outcome = lanes.observe(source, watermarks)
        if outcome == "already_observed" and lane is not None:
            frozen = frozen_lane(
                source,
                lane["fence_revision"],
                lane["latest_work_generation"],
                (lane["trigger_algorithm"], lane["trigger_digest"]),
                lane["coordination_state"],
            )
            return receipt_of(context.common, envelope, source, outcome, frozen)
        made = lanes.advance(source, watermarks, lane, work, manifest=known.document, moment=context.committed_at)
        store.advance(
            transaction,
            envelope=context.envelope,
            work=made.work.data,
            state=encode(made.state),
            superseded=None if made.superseded is None else made.superseded.data,
            expected_revision=made.expected_revision,
        )
    except OwnerConflict as conflict:
        raise Reject(str(conflict), code=ErrorCode.IDENTITY_CONFLICT) from conflict
    except Stale as stale:
        raise Retry(str(stale), code=ErrorCode.DEPENDENCY_UNAVAILABLE) from stale
    document, generation = made.work.document, made.expected_revision + 1
    digest = (document["laneTriggerDigestAlgorithmVersion"], document["laneTriggerDigest"])
    return receipt_of(
        context.common, envelope, source, outcome, frozen_lane(source, generation, generation, digest, made.state)
    )
