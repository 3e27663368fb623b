"""Every error Seapost raises on purpose.

One tree, rooted at `SeapostError`. The docstring of a class is its default message and its row in
`docs/reference/errors.md`. A class with a `sqlstate` is what the database functions raise under that
code (class `SP`, which the SQL standard leaves to implementations); `seapost.database.sqlstates`
builds the registry from these attributes, so the two cannot drift apart.
"""

from __future__ import annotations

from typing import ClassVar


class SeapostError(Exception):
    """Seapost could not do what was asked."""

    sqlstate: ClassVar[str | None] = None

    def __init__(self, message: str | None = None, *, detail: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.detail = detail
        super().__init__(self.message if detail is None else f"{self.message} ({detail})")


# Contracts: what a document must be before it may be stored or believed ---------------------------


class ContractError(SeapostError):
    """The document breaks its contract.

    `pointer` is the RFC 6901 JSON pointer of the offending value; the empty string is the whole
    document. `rule` is a short stable name of the broken rule.
    """

    def __init__(self, message: str, *, pointer: str = "", rule: str = "contract") -> None:
        self.pointer = pointer
        self.rule = rule
        super().__init__(f"{message} at {pointer!r}" if pointer else message)


class CanonicalError(ContractError):
    """The value has no canonical JSON form (RFC 8785 over I-JSON, RFC 7493)."""


class LimitExceeded(ContractError):
    """A size, depth or count limit was exceeded."""


class UnknownContract(ContractError):
    """No contract is registered under this type and version."""


class DigestMismatch(ContractError):
    """The digest does not belong to the document."""


# Producer ------------------------------------------------------------------------------------------


class AppendOutsideTransaction(SeapostError):
    """Append needs an open transaction: the connection is in autocommit mode."""


class NoActiveDeliverySet(SeapostError):
    """No delivery set is active in this database; run `seapost routes apply` first."""

    sqlstate = "SP001"


class EventConflict(SeapostError):
    """An event with this id is already stored with other content."""

    sqlstate = "SP002"


class EventNotRoutable(SeapostError):
    """The active delivery set does not contain this event type and schema version."""

    sqlstate = "SP003"


class InvalidEnvelope(SeapostError):
    """The event envelope breaks a rule of the canonical event envelope."""

    sqlstate = "SP006"


class DeliverySetIncomplete(SeapostError):
    """The deliveries of an event are not exactly the mandatory members of its delivery set."""

    sqlstate = "SP007"


class BackPressure(SeapostError):
    """Too many deliveries wait for a destination, and its limit refuses more; append again later."""

    sqlstate = "SP024"


# Delivery sets -------------------------------------------------------------------------------------


class DeliverySetConflict(SeapostError):
    """This delivery set version is already registered with another definition."""

    sqlstate = "SP004"


class InvalidDeliverySet(SeapostError):
    """The delivery set definition breaks a rule of its contract."""

    sqlstate = "SP005"


class UnknownDeliverySet(SeapostError):
    """This delivery set is not registered in this database."""

    sqlstate = "SP008"


# Delivery ------------------------------------------------------------------------------------------


class DeliveryMovedTwice(SeapostError):
    """A delivery did not move exactly once; the whole call was rolled back."""

    sqlstate = "SP011"


class WrongIsolation(SeapostError):
    """Deliveries are settled in READ COMMITTED transactions only."""

    sqlstate = "SP012"


class InvalidArgument(SeapostError):
    """An argument of a database function breaks its rule."""

    sqlstate = "SP013"


class ImmutableFact(SeapostError):
    """A stored fact cannot be changed or deleted."""

    sqlstate = "SP020"


class IllegalTransition(SeapostError):
    """This status cannot follow the stored one."""

    sqlstate = "SP021"


class UnknownDelivery(SeapostError):
    """There is no such delivery."""

    sqlstate = "SP022"


class UnknownEvent(SeapostError):
    """There is no such event."""

    sqlstate = "SP023"


# Consumer ------------------------------------------------------------------------------------------


class Retry(SeapostError):
    """A handler asks for the event again later; nothing of its transaction stays.

    `after_seconds` is the shortest wait the handler wants; None leaves it to the retry policy.
    `code` is one of the retryable error codes of `seapost.model.outcome.ErrorCode`.
    """

    def __init__(
        self, reason: str = "", *, after_seconds: float | None = None, code: str = "dependency_unavailable"
    ) -> None:
        self.after_seconds = after_seconds
        self.code = code
        super().__init__(reason or None)


class Reject(SeapostError):
    """A handler declares that this event can never be processed; it goes to quarantine.

    `code` is one of the non-retryable error codes of `seapost.model.outcome.ErrorCode`.
    """

    def __init__(self, reason: str = "", *, code: str = "version_unsupported") -> None:
        self.code = code
        super().__init__(reason or None)


# Projections ---------------------------------------------------------------------------------------


class ClaimFenced(SeapostError):
    """The shadow claim was taken over or paused; whoever holds the new one goes on."""

    sqlstate = "SP030"


class OutsideCandidate(SeapostError):
    """The event lies outside the frozen candidate of a switch."""

    sqlstate = "SP031"


class WrongPhase(SeapostError):
    """This step of a switch cannot follow the phase it is in."""

    sqlstate = "SP032"


class NotReady(SeapostError):
    """The version is not ready to be switched to."""

    sqlstate = "SP033"


class SwitchUnderWay(SeapostError):
    """A switch of the projection holds this version for a moment."""

    sqlstate = "SP034"


class ProjectionChanged(SeapostError):
    """The projection version is registered with other events or tables."""

    sqlstate = "SP035"


class InvalidToken(SeapostError):
    """The workload token is missing, malformed, expired or bound to another call."""


class AddressRefused(SeapostError):
    """The destination's address is not allowed by the transport's network policy."""


# Schema and settings -------------------------------------------------------------------------------


class SchemaNewer(SeapostError):
    """The database schema is newer than this release; use the newer release."""


class SchemaMissing(SeapostError):
    """The database has no Seapost schema, or an older one; run `seapost migrate`."""


class MigrationDirty(SeapostError):
    """An earlier migration stopped half-way."""


class MigrationChanged(SeapostError):
    """A migration that was already applied has other content than this release ships."""


class MigrationBlocked(SeapostError):
    """The migration gave up because another session holds a lock it needs."""


class UnsupportedDatabase(SeapostError):
    """The database server or its settings cannot hold Seapost."""


class InvalidSetting(SeapostError):
    """A setting is missing or breaks its rule."""
