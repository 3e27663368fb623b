"""The common shape of the facts by which an owner records that two claims exclude each other (REF-21, REF-24)."""

from __future__ import annotations

from oceanway.contracts.base import Contract
from oceanway.contracts.reasons import ConflictKind, ConflictReason
from seapost.contracts.fields import Algorithm, Digest, Timestamp


class ConflictFields(Contract):
    """In what the claims differ, and the digest of the claim that was refused; never a case (SEC-16)."""

    conflict_kind: ConflictKind
    conflicting_candidate_digest_algorithm_version: Algorithm
    conflicting_candidate_digest: Digest
    reason_code: ConflictReason
    detected_at: Timestamp
