"""The operator of the day: ends the cases that operations shows, through the whole chain of decisions.

A finalization case: the owner is repaired, then the case resolved; now and then the operator is hasty and resolves it
first, gets the next generation of the case, and repairs then. A late case: charged, waived, left open, or settled by
the provider, who takes its word back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oceanway.billing.late_commands.command import LateCommand, apply_late_command
from oceanway.billing.resolution.command import ResolutionCommand, apply_resolution
from oceanway.contracts.errors import Stale
from oceanway.contracts.facts.resolution import InvestigationEvidenceReference
from oceanway.demo import store_day
from oceanway.demo.plan import Statement
from oceanway.demo.staging import now
from oceanway.demo.waves import statement_of
from oceanway.execution import transactions as execution
from oceanway.gateway import transactions as gateway
from oceanway.metering import conflicts as metering
from oceanway.operations import commands, commands_late

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.demo.ledger import LedgerWriter
    from oceanway.demo.staging import Staged, StagedRun
    from oceanway.demo.waves import Sessions

GATEWAY_WORKLOAD: Final = "drive.operations"
"""The admin command gateway: whoever presents the commands, to whom every grant is bound."""
ASKS: Final = "workforce:asks"
APPROVES: Final = "workforce:approves"

LateDeed = Literal["charge", "waive", "revise", "leave"]


@dataclass(slots=True)
class Operator:
    """Who ends the cases.

    Args:
        watch_core: a session that only looks.
    """

    sessions: Sessions
    watch_core: Connection[Any]
    ledger: LedgerWriter
    runs: dict[str, StagedRun] = field(default_factory=dict[str, "StagedRun"])
    _attempts: dict[str, Staged] = field(default_factory=dict[str, "Staged"])
    _key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    _left: set[str] = field(default_factory=set[str])

    def knows(self, run: StagedRun) -> None:
        """A run whose cases this operator may meet."""
        self.runs[run.run_id] = run
        self._attempts |= {attempt.plan.id: attempt for attempt in run.attempts}

    def step(self) -> int:
        """End what is open and not left so; how many cases were acted upon."""
        acted = sum(self._end(*case) for case in store_day.open_cases(self.watch_core))
        late = [case for case in store_day.open_late_cases(self.watch_core) if case not in self._left]
        return acted + sum(self._close(case) for case in late)

    def waits(self) -> bool:
        """Whether a case is open that will be acted upon."""
        late = set(store_day.open_late_cases(self.watch_core)) - self._left
        return bool(late or store_day.open_cases(self.watch_core))

    def _end(self, case_ref: str, run_id: str, generation: int) -> int:
        """Repair the owner, unless hasty, and resolve the case."""
        is_hasty = generation == 1 and _pick(case_ref, 3) == 0
        core, billing = self.sessions.core, self.sessions.billing
        try:
            with core.transaction():
                seen = commands.preview(core, case_ref)
                if not is_hasty:
                    self._repair(run_id, seen.reason)
                reference = InvestigationEvidenceReference(
                    reference_type="investigation", reference_schema_version="1", reference=f"ticket-{run_id}"
                )
                _ = commands.request_resolution(core, case_ref, actor=ASKS, references=[reference])
                _ = commands.approve(core, case_ref, approver=APPROVES, seen=seen.decision)
                _ = commands.prepare_candidate(core, case_ref)
                _ = commands.decide(core, case_ref, verdict="granted")
                granted = commands.mint_grant(core, case_ref, key=self._key, bound_workload=GATEWAY_WORKLOAD)
            with billing.transaction():
                _ = apply_resolution(
                    billing,
                    ResolutionCommand(granted.request, granted.candidate, granted.decision, granted.token),
                    caller=GATEWAY_WORKLOAD,
                    grant_keys=[self._key.public_key()],
                )
        except Stale:
            return 0  # somebody was faster, or operations has not heard of the end yet
        return 1

    def _repair(self, run_id: str, reason: str) -> None:
        if reason == "execution_conflict":
            with self.sessions.execution.transaction():
                _ = execution.repair_finalization(self.sessions.execution, run_id)
        else:
            with self.sessions.metering.transaction():
                _ = metering.repair(self.sessions.metering, self.runs[run_id].first_dimension)

    def _close(self, case_ref: str) -> int:
        deed: LateDeed = ("charge", "waive", "revise", "leave")[_pick(case_ref, 4)]
        match deed:
            case "leave":
                self._left.add(case_ref)
                return 0
            case "revise":
                return self._take_back(case_ref)
            case "charge" | "waive":
                return self._command(case_ref, deed)

    def _command(self, case_ref: str, action: Literal["charge", "waive"]) -> int:
        core, billing = self.sessions.core, self.sessions.billing
        try:
            with core.transaction():
                _ = commands_late.request_command(core, case_ref, action=action, actor=ASKS)
                _ = commands_late.approve(core, case_ref, approver=APPROVES)
                granted = commands_late.mint_grant(core, case_ref, key=self._key, bound_workload=GATEWAY_WORKLOAD)
            self.ledger.command(case_ref, action)
            with billing.transaction():
                _ = apply_late_command(
                    billing,
                    LateCommand(granted.command, granted.token),
                    caller=GATEWAY_WORKLOAD,
                    keys=[self._key.public_key()],
                )
        except Stale:
            return 0
        return 1

    def _take_back(self, case_ref: str) -> int:
        """The provider returns to what it said before the bill."""
        try:
            with self.sessions.core.transaction():
                event = commands_late.preview(self.sessions.core, case_ref).event
        except Stale:
            return 0
        self._left.add(case_ref)
        attempt = self._attempts[event.execution_attempt_id]
        charge = next(one for one in self.runs[event.run_id].plan.charges if one.key == event.charge_dimension_key)
        chain = attempt.plan.usage(charge)
        assert chain is not None  # noqa: S101 - what was charged was used
        before = chain.early[-1].value or "0"
        self.ledger.revisions([(attempt.plan.id, charge.key, before)])
        with self.sessions.gateway.transaction():
            number = len(chain.early) + len(chain.late) + 1
            said = statement_of(attempt, chain, Statement("available", before), number)
            _ = gateway.advance_availability(self.sessions.gateway, [said], recorded_at=now())
        return 1


def _pick(label: str, among: int) -> int:
    """A choice that follows from a label."""
    return sha256(label.encode()).digest()[0] % among
