"""The chain of decisions that closes a late case by hand: command, approval by somebody else, signed grant (REF-50).

The same form as for a finalization case, with one difference: the command says what shall happen to the exposure as it
stands, `charge` or `waive`, and its revision. A newer step of the dimension makes it another operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from oceanway.contracts.errors import InvalidArgument, NotFound, Stale
from oceanway.contracts.events import LateSettlementCaseRequested
from oceanway.contracts.facts.settlement import EconomicFields
from oceanway.contracts.facts.transitions import (
    LateAction,
    LateSettlementCommand,
    LateSettlementGrant,
    late_settlement_operation_id,
)
from oceanway.contracts.identity import det, quad_fields
from oceanway.contracts.quads_billing import LateSettlementCommandQuad
from oceanway.contracts.release import PROJECTION
from oceanway.operations import chain as chains
from oceanway.operations import store_decisions, store_queries
from oceanway.operations.chain import Chain, moment_of
from seapost.contracts.canonical import check_canonical
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Algorithm, Digest, Identifier, Timestamp, Version
from seapost.contracts.identifiers import write_timestamp

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from psycopg import Connection

APPROVAL_LIFETIME: Final = timedelta(hours=1)
GRANT_LIFETIME_SECONDS_MAX: Final = 300
GRANT_LIFETIME_SECONDS: Final = 60

_COMMAND: Final = "late_settlement_command"


class LateSettlementApproval(
    LateSettlementCommandQuad, ContentAddressed, prefix="lateSettlementApproval", outside=("approvedAt",)
):
    """Another person saw the exposure that the command is about, and approved for a limited time."""

    late_settlement_approval_ref: Identifier
    late_settlement_approval_schema_version: Version
    late_settlement_approval_digest_algorithm_version: Algorithm
    late_settlement_approval_digest: Digest
    approver_workforce_principal_id: Identifier
    approved_at: Timestamp
    expires_at: Timestamp


@dataclass(frozen=True, slots=True)
class GrantedLate:
    """What the admin command gateway presents to billing; the token is in no representation."""

    command: LateSettlementCommand
    grant: LateSettlementGrant
    token: str

    def __repr__(self) -> str:
        return f"GrantedLate(grant={self.grant.late_settlement_grant_ref!r})"


@dataclass(frozen=True, slots=True)
class OpenExposure:
    """A late case as it stands: what a command would charge or waive."""

    case_ref: str
    state_revision: int
    exposure_amount: str
    event: LateSettlementCaseRequested


def preview(connection: Connection[Any], case_ref: str, *, version: str = PROJECTION[1]) -> OpenExposure:
    """Show what a command would close.

    Raises:
        NotFound: there is no such case.
        Stale: it is not open, or the dimension that it is about is not known yet.
    """
    stored = store_queries.late_case(connection, version=version, case_ref=case_ref)
    if stored is None:
        raise NotFound("There is no such case.")
    request, revision, amount = stored.request_envelope, stored.state_revision, stored.exposure_amount
    if stored.state != "open" or request is None or not revision or amount is None:
        raise Stale("The case is not open.")
    envelope: Any = check_canonical(request)
    return OpenExposure(case_ref, revision, amount, LateSettlementCaseRequested.decode(envelope["payload"]))


def request_command(
    connection: Connection[Any],
    case_ref: str,
    *,
    action: LateAction,
    actor: str,
    version: str = PROJECTION[1],
    now: datetime | None = None,
) -> LateSettlementCommand:
    """Ask for the open exposure to be charged or waived.

    Raises:
        NotFound: there is no such case.
        Stale: it is not open.
        OwnerConflict: somebody asked otherwise at this revision, and that chain still goes on.
    """
    moment = moment_of(now)
    chain, seen = _running(connection, case_ref, version, moment)
    command = LateSettlementCommand.assemble(
        late_settlement_command_ref=det(_COMMAND, chain.chain_id),
        **{name: getattr(seen.event, name) for name in EconomicFields.model_fields},
        logical_operation_id=late_settlement_operation_id(case_ref, seen.state_revision),
        case_ref=case_ref,
        action=action,
        actor_workforce_principal_id=actor,
        expected_state_revision=seen.state_revision,
        exposure_amount=seen.exposure_amount,
        requested_at=write_timestamp(moment),
    )
    return chains.record(connection, chain, (1, "command"), command, after=None, actor=actor)


def approve(
    connection: Connection[Any],
    case_ref: str,
    *,
    approver: str,
    version: str = PROJECTION[1],
    now: datetime | None = None,
) -> LateSettlementApproval:
    """Approve the command of a case for a limited time.

    Raises:
        InvalidArgument: who asked approves.
        Incomplete: nobody asked at this revision.
        Stale: the case is not open.
    """
    moment = moment_of(now)
    chain, _ = _running(connection, case_ref, version, moment)
    command = chain.step("command", LateSettlementCommand)
    if approver == command.actor_workforce_principal_id:
        raise InvalidArgument("A command is approved by somebody else than who asked.")
    if chain.has("approval"):
        first = chain.step("approval", LateSettlementApproval)
        if first.approver_workforce_principal_id == approver:
            return first
    approval = LateSettlementApproval.assemble(
        late_settlement_approval_ref=det("late_settlement_approval", chain.chain_id),
        **quad_fields(_COMMAND, command.quad()),
        approver_workforce_principal_id=approver,
        approved_at=write_timestamp(moment),
        expires_at=write_timestamp(moment + APPROVAL_LIFETIME),
    )
    return chains.record(connection, chain, (2, "approval"), approval, after=command, actor=approver)


def mint_grant(
    connection: Connection[Any],
    case_ref: str,
    *,
    key: Ed25519PrivateKey,
    bound_workload: str,
    lifetime_seconds: int = GRANT_LIFETIME_SECONDS,
    version: str = PROJECTION[1],
    now: datetime | None = None,
) -> GrantedLate:
    """Sign the one grant of an approved command; asked again while it lasts, the same one.

    Raises:
        Incomplete: there is no command or no approval.
        InvalidArgument: the lifetime is out of range.
        Stale: the case is not open.
        OwnerConflict: the grant is bound to another workload.
    """
    if not 1 <= lifetime_seconds <= GRANT_LIFETIME_SECONDS_MAX:
        raise InvalidArgument(f"A grant lives 1 to {GRANT_LIFETIME_SECONDS_MAX} seconds.")
    moment = moment_of(now)
    chain, _ = _running(connection, case_ref, version, moment)
    command = chain.step("command", LateSettlementCommand)
    approval = chain.step("approval", LateSettlementApproval)
    first = chain.step("grant", LateSettlementGrant) if chain.has("grant") else None
    issued_at = int(moment.timestamp()) if first is None else first.iat
    grant = LateSettlementGrant.assemble(
        late_settlement_grant_ref=det("late_settlement_grant", chain.chain_id),
        jti=uuid4().hex if first is None else first.jti,
        iss="operations",
        aud="billing",
        sub=bound_workload,
        actor_workforce_principal_id=command.actor_workforce_principal_id,
        action=command.action,
        command_digest=command.quad().digest,
        case_ref=case_ref,
        expected_state_revision=command.expected_state_revision,
        iat=issued_at,
        exp=issued_at + lifetime_seconds if first is None else first.exp,
    )
    actor = command.actor_workforce_principal_id
    stored = chains.record(connection, chain, (3, "grant"), grant, after=approval, actor=actor)
    store_decisions.issue_grant(
        connection,
        chain_id=chain.chain_id,
        grant_jti=stored.jti,
        grant_digest=stored.quad().digest,
        expires_at=datetime.fromtimestamp(stored.exp, tz=moment.tzinfo),
    )
    return GrantedLate(command, stored, chains.sign_grant(stored, key))


def _running(connection: Connection[Any], case_ref: str, version: str, moment: datetime) -> tuple[Chain, OpenExposure]:
    def is_over(chain: Chain) -> bool:
        if chain.has("grant"):
            return chain.step("grant", LateSettlementGrant).exp <= moment.timestamp()
        if chain.has("approval"):
            approval = chain.step("approval", LateSettlementApproval)
            return datetime.fromisoformat(approval.expires_at) <= moment
        return False

    seen = preview(connection, case_ref, version=version)
    operation_id = late_settlement_operation_id(case_ref, seen.state_revision)
    return chains.current(connection, operation_id, is_over), seen
