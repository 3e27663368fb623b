"""The gate before reconciliation cases: closed until there is a way out of one (CASE-24, CASE-25, REF-43).

States: closed (the default: a conflict leaves the work pending, AMB-51) → open, only together with every part of the
command chain → closed again; cases that were entered keep their way out. The database keeps the state and refuses a
case while it is closed; a worker refuses to start over a gate whose chain is incomplete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from oceanway.billing import store_finalization as store
from oceanway.contracts.errors import GateClosed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psycopg import Connection

FLAG: Final = "finalization_reconciliation_producer_enabled"

ROUTES: Final = ("request", "preview", "approval", "jit", "candidate", "decision", "grant")
"""The steps of a command that operations offers, in order (CASE-25)."""

DECISION_STORE: Final = "decision_store"
COMMAND_HANDLER: Final = "command_handler"


@dataclass(frozen=True, slots=True)
class CommandChain:
    """What is registered of the way out of a case.

    Attributes:
        routes: the steps that operations offers; see `ROUTES`.
        decision_store: operations keeps what was decided.
        command_handler: billing applies a resolution.
    """

    routes: frozenset[str]
    decision_store: bool
    command_handler: bool

    @property
    def parts(self) -> frozenset[str]:
        """Every part by name."""
        stores = {DECISION_STORE} if self.decision_store else set[str]()
        handlers = {COMMAND_HANDLER} if self.command_handler else set[str]()
        return self.routes | stores | handlers


def missing_parts(parts: Iterable[str]) -> tuple[str, ...]:
    """What a command chain still lacks, in order."""
    there = frozenset(parts)
    return tuple(part for part in (*ROUTES, DECISION_STORE, COMMAND_HANDLER) if part not in there)


def require_chain(parts: Iterable[str]) -> None:
    """Raise `GateClosed` unless every part is there."""
    missing = missing_parts(parts)
    if missing:
        raise GateClosed(f"{FLAG} needs the whole command chain; missing: {', '.join(missing)}")


def open_gate(connection: Connection[Any], chain: CommandChain, *, actor: str) -> None:
    """Enable the producer together with its command chain, or raise `GateClosed` naming what is missing."""
    require_chain(chain.parts)
    store.set_gate(connection, enabled=True, command_chain=chain.parts, actor=actor)


def close_gate(connection: Connection[Any], *, actor: str) -> None:
    """Disable the producer; commands for open cases go on."""
    store.set_gate(connection, enabled=False, command_chain=store.read_gate(connection).command_chain, actor=actor)


def starting_gate(connection: Connection[Any], *, wanted: bool | None, chain: CommandChain | None) -> bool:
    """Whether a worker that starts now may enter cases.

    Args:
        wanted: True insists, False declines, None takes what the database says.
        chain: what is registered in this installation, if the caller knows it.

    Raises:
        GateClosed: the gate is wanted or open, and the chain is incomplete; or it is wanted and not open.
    """
    if wanted is False:
        return False
    state = store.read_gate(connection)
    if not (wanted or state.enabled):
        return False
    require_chain(state.command_chain if chain is None else chain.parts)
    if not state.enabled:
        raise GateClosed(f"{FLAG} is off in the database.")
    return True
