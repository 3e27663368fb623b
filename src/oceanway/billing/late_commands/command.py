"""The command that closes an open exposure by hand: charge it, or waive it (TX-12, APP-11, REF-50).

Order of checks, and why: an operation that was carried out is answered from its result, whatever its grant is worth
today (CASE-20); else the grant must be authentic, current, for this command and this caller; else the command must be
about the exposure as it is; then one transaction consumes the grant and writes result, exposure, bookings, audit and
both events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from oceanway.billing import store_settlement as store
from oceanway.billing.catch_up.works import PLACE, SUBJECT
from oceanway.billing.grants import read_grant, verify_grant
from oceanway.billing.transitions.documents import Dimension, exposure_fact, shared_fields
from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.errors import InvalidArgument, NotFound, OwnerConflict, Stale
from oceanway.contracts.events.settlement import (
    CaseResolutionApplied,
    LateSettlementCommandResultCommitted,
    OwnerLateCommandResult,
)
from oceanway.contracts.facts.settlement import SettlementEconomicIdentity
from oceanway.contracts.facts.transitions import (
    ExposureResolved,
    LateSettlementCommand,
    LateSettlementCommandResult,
    LateSettlementExposure,
    LateSettlementGrant,
)
from oceanway.contracts.identity import det, quad_fields, quad_of
from seapost.contracts.envelope import new_event_id
from seapost.contracts.identifiers import write_timestamp

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from psycopg import Connection

    from oceanway.billing.store_settlement import CommandState


@dataclass(frozen=True, slots=True)
class LateCommand:
    """What the admin command gateway presents.

    Attributes:
        grant: the signed token; it is in no representation.
    """

    command: LateSettlementCommand
    grant: str = field(repr=False)


def apply_late_command(
    connection: Connection[Any],
    late: LateCommand,
    *,
    caller: str,
    keys: Sequence[Ed25519PublicKey],
    now: datetime | None = None,
) -> LateSettlementCommandResult:
    """Carry out a late command in the caller's transaction, or return the first result of this operation.

    Args:
        caller: the workload that presents the command, `sub` of its own verified token (SEC-14).
        keys: with which operations signs grants.
        now: an aware moment; the clock by default.

    Raises:
        InvalidToken: the grant is not authentic, not current, or for something else.
        OwnerConflict: the operation was carried out with another command or grant.
        NotFound: billing never opened this case.
        Stale: the exposure of the case is not open at the expected revision.
        InvalidArgument: the command names another dimension or amount.
        GrantConsumed: another command consumed the grant.
    """
    command = late.command
    moment = datetime.now(UTC) if now is None else now
    grant = read_grant(late.grant, keys, contract=LateSettlementGrant)
    state = store.read_command_state(connection, command.case_ref, command.logical_operation_id)
    if state.applied is not None:
        return _first(state.applied, command, grant)
    _ = verify_grant(
        late.grant,
        keys,
        contract=LateSettlementGrant,
        caller=caller,
        expected={
            "actor_workforce_principal_id": command.actor_workforce_principal_id,
            "action": command.action,
            "command_digest": command.quad().digest,
            "case_ref": command.case_ref,
            "expected_state_revision": command.expected_state_revision,
        },
        now=moment.timestamp(),
    )
    dimension = _dimension(command, state)
    result = _result(dimension, command, grant, write_timestamp(moment))
    exposure = _closed(dimension, result)
    stored = store.commit_late_command(
        connection,
        result=result.canonical(),
        exposure=exposure.canonical(),
        envelopes=_envelopes(result, exposure),
    )
    return LateSettlementCommandResult.decode(stored)


def _first(document: bytes, command: LateSettlementCommand, grant: LateSettlementGrant) -> LateSettlementCommandResult:
    """The first result, if it came from this very command and grant."""
    first = LateSettlementCommandResult.decode(document)
    origin = (quad_of(first, "late_settlement_command"), quad_of(first, "late_settlement_grant"), first.grant_jti)
    if origin != (command.quad(), grant.quad(), grant.jti):
        raise OwnerConflict("The operation was carried out with another command or grant.")
    return first


def _dimension(command: LateSettlementCommand, state: CommandState) -> Dimension:
    """The dimension of the case, which must be as the command says."""
    if state.dimension is None or state.subject is None or state.economic_identity is None:
        raise NotFound("Billing never opened this case.")
    identity = {python: state.subject.get(wire) for wire, python in (*SUBJECT.items(), *PLACE.items())}
    economic = SettlementEconomicIdentity.decode(dict(state.economic_identity))
    dimension = Dimension.of(state.dimension, identity, economic)
    if any(getattr(command, name) != value for name, value in dimension.identity.items()):
        raise InvalidArgument("The command names another dimension.")
    if (dimension.case_ref, dimension.revision) != (command.case_ref, command.expected_state_revision):
        raise Stale("The exposure of the case is not open at this revision.")
    if Decimal(command.exposure_amount) != dimension.money.exposure:
        raise InvalidArgument("The command names another amount than what is open.")
    return dimension


def _result(
    dimension: Dimension, command: LateSettlementCommand, grant: LateSettlementGrant, now: str
) -> LateSettlementCommandResult:
    is_charge = command.action == "charge"
    return LateSettlementCommandResult.assemble(
        late_settlement_command_result_ref=det("late_settlement_command_result", command.logical_operation_id),
        **dimension.identity,
        from_revision=dimension.revision,
        to_revision=dimension.revision + 1,
        logical_operation_id=command.logical_operation_id,
        case_ref=command.case_ref,
        action=command.action,
        actor_workforce_principal_id=command.actor_workforce_principal_id,
        **quad_fields("late_settlement_command", command.quad()),
        **quad_fields("late_settlement_grant", grant.quad()),
        grant_jti=grant.jti,
        ledger_delta=command.exposure_amount if is_charge else "0",
        waived_delta="0" if is_charge else command.exposure_amount,
        causation_event_id=dimension.last_event_id,
        committed_at=now,
    )


def _closed(dimension: Dimension, result: LateSettlementCommandResult) -> LateSettlementExposure:
    assert dimension.opening_revision is not None  # noqa: S101 - an open case was opened
    return exposure_fact(
        dimension,
        ExposureResolved(case_ref=result.case_ref),
        opening_revision=dimension.opening_revision,
        revision=result.to_revision,
        now=result.committed_at,
    )


def _envelopes(result: LateSettlementCommandResult, exposure: LateSettlementExposure) -> tuple[bytes, bytes]:
    """The result's event, and that of the case it ends; identifiers and causes are frozen first (APP-06)."""
    result_id, case_id = new_event_id(), new_event_id()
    quad = quad_fields("late_settlement_command_result", result.quad())
    names = (
        "logical_operation_id",
        "case_ref",
        "action",
        "actor_workforce_principal_id",
        "ledger_delta",
        "waived_delta",
    )
    committed = LateSettlementCommandResultCommitted(
        **shared_fields(result, exposure.quad(), result.causation_event_id),
        **quad,
        **{name: getattr(result, name) for name in names},
    )
    resolved = CaseResolutionApplied(
        **shared_fields(result, exposure.quad(), str(result_id)),
        case_ref=result.case_ref,
        owner=OwnerLateCommandResult(**quad),
    )
    first = envelope_of(
        committed,
        event_id=result_id,
        causation_id=result.causation_event_id,
        operation_id=result.logical_operation_id,
        correlation_id=result.run_id,
    )
    second = envelope_of(
        resolved,
        event_id=case_id,
        causation_id=str(result_id),
        operation_id=result.logical_operation_id,
        correlation_id=result.run_id,
    )
    return first.envelope, second.envelope
