"""Conflicts about settlement inputs: declared by whoever found the second claim, ended by a repair (REF-49, AMB-30)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from oceanway.contracts.errors import NotFound
from oceanway.contracts.facts.settlement import SettlementInputConflictFact
from oceanway.contracts.identity import ALGORITHM, det
from oceanway.metering import store_reads
from oceanway.metering.documents import ATTEMPT, Document, part, quad, read, seal
from seapost.contracts.identifiers import write_timestamp

if TYPE_CHECKING:
    from psycopg import Connection


def declare_settlement_conflict(
    connection: Connection[Any],
    settlement_dimension_id: str,
    *,
    candidate_digest: str,
    kind: str = "content",
    reason: str = "other_candidate_for_identity",
) -> Document:
    """Record that another claim about the current input of a dimension exists; its fact, by wire names.

    Until `repair`, reads of the dimension answer `conflicting` with this fact. The caller owns the transaction.

    Args:
        candidate_digest: of the claim that was refused.
        kind: in what the claims differ.
        reason: what was found.

    Raises:
        NotFound: the dimension has no settlement input.
        OwnerConflict: another conflict of the dimension is open, or this one was repaired.
    """
    [(document, _)] = store_reads.current(connection, [settlement_dimension_id])
    if document is None:
        raise NotFound("The dimension has no settlement input.")
    snapshot = read(document)
    fact = seal(
        SettlementInputConflictFact,
        {
            "settlementInputConflictFactRef": det(
                "settlement_input_conflict", snapshot["settlementInputSnapshotRef"], candidate_digest
            ),
            **part(snapshot, (*ATTEMPT, "chargeDimensionKey", "settlementDimensionId")),
            **quad("settlementInputSnapshot", snapshot),
            "settlementInputStateVersion": snapshot["settlementInputStateVersion"],
            "conflictKind": kind,
            "conflictingCandidateDigestAlgorithmVersion": ALGORITHM,
            "conflictingCandidateDigest": candidate_digest,
            "reasonCode": reason,
            "detectedAt": write_timestamp(datetime.now(UTC)),
        },
    )
    store_reads.declare_conflict(connection, dimension=settlement_dimension_id, document=fact.data)
    return fact.document


def repair(connection: Connection[Any], settlement_dimension_id: str) -> bool:
    """End the open conflict of a dimension; whether there was one. The caller owns the transaction."""
    return store_reads.repair(connection, dimension=settlement_dimension_id)
