"""What a call to a consumer can end in: three closed values (DLV-03), and the closed error codes (REF-07)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ErrorCode(StrEnum):
    """Normalized, low-cardinality reason of a finish that is not an acknowledgement (REF-07)."""

    DEPENDENCY_UNAVAILABLE = "dependency_unavailable"
    TIMEOUT = "timeout"
    CAPACITY_PROTECTED = "capacity_protected"
    OWNER_UNREADABLE = "owner_unreadable"
    REVISION_GAP = "revision_gap"
    FENCE_UNBINDABLE = "fence_unbindable"
    ACK_INVALID = "ack_invalid"
    WORKER_STOPPED = "worker_stopped"
    LEASE_EXPIRED = "lease_expired"
    SCHEMA_UNKNOWN = "schema_unknown"
    SCHEMA_INVALID = "schema_invalid"
    DIGEST_CONFLICT = "digest_conflict"
    ENVELOPE_INVARIANT_BROKEN = "envelope_invariant_broken"
    IDENTITY_CONFLICT = "identity_conflict"
    VERSION_UNSUPPORTED = "version_unsupported"
    POLICY_MAX_ATTEMPTS = "policy_max_attempts"
    BOOTSTRAP_UNPARSABLE = "bootstrap_unparsable"


RETRYABLE_CODES = frozenset(
    {
        ErrorCode.DEPENDENCY_UNAVAILABLE,
        ErrorCode.TIMEOUT,
        ErrorCode.CAPACITY_PROTECTED,
        ErrorCode.OWNER_UNREADABLE,
        ErrorCode.REVISION_GAP,
        ErrorCode.FENCE_UNBINDABLE,
        ErrorCode.ACK_INVALID,
        ErrorCode.WORKER_STOPPED,
    }
)

NON_RETRYABLE_CODES = frozenset(
    {
        ErrorCode.SCHEMA_UNKNOWN,
        ErrorCode.SCHEMA_INVALID,
        ErrorCode.DIGEST_CONFLICT,
        ErrorCode.ENVELOPE_INVARIANT_BROKEN,
        ErrorCode.IDENTITY_CONFLICT,
        ErrorCode.VERSION_UNSUPPORTED,
    }
)

# Waiting for something that must come anyway never exhausts a configured maximum (AMB-18); a
# stopped worker says nothing about the event.
UNCOUNTED_CODES = frozenset(
    {ErrorCode.REVISION_GAP, ErrorCode.OWNER_UNREADABLE, ErrorCode.FENCE_UNBINDABLE, ErrorCode.WORKER_STOPPED}
)


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The consumer answered with a receipt and an acknowledgement; both are still unverified JSON text."""

    receipt: bytes
    ack: bytes


@dataclass(frozen=True, slots=True)
class Retryable:
    """Try again later (DLV-04).

    Attributes:
        reference: opaque id of a redacted log record, for `sanitized_error_ref`.
        retry_after_seconds: the consumer's own wish; the policy clamps it.
        answered: whether the consumer said something about this very delivery. A call that ended
            without an answer makes its deliveries suspects, which are retried in ever smaller batches.
        reached: whether the call got as far as the consumer. One that did not (connection refused, an endpoint that is
            busy or wrong) was dangerous to nobody and tells nothing: a suspect stays a suspect (F20).
    """

    code: ErrorCode
    reference: str | None = None
    retry_after_seconds: float | None = None
    answered: bool = True
    reached: bool = True


@dataclass(frozen=True, slots=True)
class NonRetryable:
    """The event can never be processed as it is; it goes to quarantine (DLV-05)."""

    code: ErrorCode
    reference: str | None = None


Outcome = Acknowledged | Retryable | NonRetryable

OUTCOMES: Final = (Acknowledged, Retryable, NonRetryable)
"""The same for `isinstance`, which would build the union anew for every answer."""
