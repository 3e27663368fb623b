"""Late commands as the admin command gateway presents them, with grants as operations signs them."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oceanway.billing.grants import sign_grant
from oceanway.billing.late_commands.command import LateCommand, apply_late_command
from oceanway.billing.ledger import text
from oceanway.contracts.facts.transitions import (
    LateSettlementCommand,
    LateSettlementCommandResult,
    LateSettlementGrant,
    late_settlement_operation_id,
)
from oceanway.contracts.identity import det

if TYPE_CHECKING:
    from tests.kit.oceanway.billing_settlement import Billing
    from tests.kit.oceanway.billing_settlement_facts import Run

CALLER: Final = "serve.operations"
ACTOR: Final = "workforce-1"
STAMP: Final = "2026-03-01T10:00:00.000000Z"


@cache
def grant_key() -> Ed25519PrivateKey:
    """The key of operations in this test process."""
    return Ed25519PrivateKey.generate()


def late_command(billing: Billing, run: Run, action: str, **changes: Any) -> LateSettlementCommand:
    """Make the command that closes the open exposure of a run's first dimension, or one that differs in some fields."""
    state = billing.dimension(run)
    fields: dict[str, Any] = {
        **run.place(),
        "settlement_economic_identity": run.economic(run.keys[0]),
        "case_ref": state["exposure_case_ref"],
        "action": action,
        "actor_workforce_principal_id": ACTOR,
        "expected_state_revision": state["state_revision"],
        "exposure_amount": text(state["exposure_amount"]),
        "requested_at": STAMP,
        **changes,
    }
    operation = late_settlement_operation_id(fields["case_ref"], fields["expected_state_revision"])
    return LateSettlementCommand.assemble(
        late_settlement_command_ref=det("late_settlement_command", operation), logical_operation_id=operation, **fields
    )


def grant_for(command: LateSettlementCommand, *, key: Ed25519PrivateKey | None = None, **changes: Any) -> str:
    """Sign the grant of a command, or one that differs in some claims."""
    now = int(time.time())
    claims: dict[str, Any] = {
        "jti": uuid4().hex,
        "iss": "operations",
        "aud": "billing",
        "sub": CALLER,
        "actor_workforce_principal_id": command.actor_workforce_principal_id,
        "action": command.action,
        "command_digest": command.quad().digest,
        "case_ref": command.case_ref,
        "expected_state_revision": command.expected_state_revision,
        "iat": now,
        "exp": now + 60,
        **changes,
    }
    grant = LateSettlementGrant.assemble(
        late_settlement_grant_ref=det("late_settlement_grant", claims["jti"]), **claims
    )
    return sign_grant(grant, key or grant_key())


def carry_out(
    billing: Billing, command: LateSettlementCommand, grant: str | None = None, *, caller: str = CALLER
) -> LateSettlementCommandResult:
    """Carry a command out in a transaction of its own."""
    late = LateCommand(command, grant or grant_for(command))
    with billing.pool.connection() as connection:
        return apply_late_command(connection, late, caller=caller, keys=[grant_key().public_key()])
