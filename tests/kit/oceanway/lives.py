"""Lives of runs for tests: what the applications of core, execution, gateway and billing would do, in small steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from oceanway.billing import admission as billing
from oceanway.contracts.facts.execution import ChargeDimension, ResultFailed, ResultSucceeded
from oceanway.contracts.facts.gateway import CostDimension
from oceanway.contracts.subject import RunFields
from oceanway.core import transactions as core
from oceanway.execution import documents as execution_documents
from oceanway.execution import transactions as execution
from oceanway.gateway import documents as gateway_documents
from oceanway.gateway import transactions as gateway
from oceanway.installation.layout import Database

if TYPE_CHECKING:
    from oceanway.contracts.facts.admission import RunAdmissionManifest
    from oceanway.contracts.facts.execution import AttemptExecutionManifest, NotDispatchedFact
    from oceanway.contracts.facts.gateway import AttemptRouteBinding, ProviderEvidenceKind
    from oceanway.gateway.documents import Report
    from tests.kit.oceanway.pipeline import Pipeline

MOMENT: Final = "2026-01-05T08:00:00.000000Z"
DEPLOYMENT: Final = "deployment-1"
CHARGE: Final = "tokens"
USAGE: Final = "usage.tokens"
COST: Final = "cost.total"
PRICE: Final = Decimal("0.02")


@dataclass(slots=True)
class Attempt:
    """One attempt as its owners know it."""

    manifest: AttemptExecutionManifest
    binding: AttemptRouteBinding

    @property
    def id(self) -> str:
        """Execution attempt id."""
        return self.manifest.execution_attempt_id


@dataclass(slots=True)
class Life:
    """One run of one step, on a pipeline; each method is one transaction of its owner."""

    pipeline: Pipeline
    name: str = field(default_factory=lambda: uuid4().hex[:12])
    reserved: Decimal = Decimal(10)
    deposit: Decimal = Decimal(100)
    manifest: RunAdmissionManifest = field(init=False)
    attempts: list[Attempt] = field(default_factory=list[Attempt])

    def __post_init__(self) -> None:
        subject = RunFields(
            tenant_kind="organization",
            tenant_id="acme",
            workspace_id="main",
            billing_account_id=f"account-{self.name}",
            billing_reservation_id=f"reservation-{self.name}",
            run_id=f"run-{self.name}",
        )
        self.manifest = core.admission_manifest(subject, steps={f"step-{self.name}": [CHARGE]}, created_at=MOMENT)

    @property
    def run_id(self) -> str:
        """Run id."""
        return self.manifest.run_id

    @property
    def reservation_id(self) -> str:
        """Billing reservation id."""
        return self.manifest.billing_reservation_id

    def admit(self) -> Life:
        """Billing first, then core, then execution takes the run over."""
        account = self.manifest.billing_account_id
        with self.pipeline.connect(Database.BILLING) as connection:
            _ = billing.open_account(connection, account, "EUR")
            _ = billing.deposit(connection, f"deposit-{self.name}", account, self.deposit)
            _ = billing.enter_price(connection, billing.PriceKey("standard", "1", "token", "EUR"), PRICE)
            _ = billing.admit(connection, billing.ReservationAdmission(self.manifest, self.reserved, "EUR"))
        with self.pipeline.connect(Database.CORE) as connection:
            _ = core.admit(connection, core.RunAdmission(self.manifest, str(self.reserved), "EUR"))
        with self.pipeline.connect(Database.EXECUTION) as connection:
            _ = execution.open_runs(connection, [self.manifest])
        return self

    def attempt(self) -> Attempt:
        """A bound, started attempt of the only step."""
        name = f"attempt-{self.name}-{len(self.attempts) + 1}"
        route = gateway_documents.route_snapshot(
            "route-1",
            "provider",
            [CostDimension(source_evidence_dimension_key=COST, currency="EUR", cost_mapping_version="1")],
            captured_at=MOMENT,
        )
        binding = gateway_documents.route_binding(
            route, execution_attempt_id=name, gateway_deployment_id=DEPLOYMENT, bound_at=MOMENT
        )
        manifest = execution_documents.attempt_manifest(
            self.manifest,
            run_step_id=f"step-{self.name}",
            execution_attempt_id=name,
            binding=binding,
            charge_dimensions=[
                ChargeDimension(
                    charge_dimension_key=CHARGE,
                    usage_dimension_key=USAGE,
                    quantity_unit="token",
                    currency="EUR",
                    price_book_ref="standard",
                    price_book_version="1",
                )
            ],
            cost_dimension_keys=[COST],
            created_at=MOMENT,
        )
        with self.pipeline.connect(Database.GATEWAY) as connection:
            _ = gateway.bind_routes(connection, [(route, binding)])
        with self.pipeline.connect(Database.EXECUTION) as connection:
            _ = execution.register_attempts(connection, [manifest])
            _ = execution.start_attempts(connection, [name])
        self.attempts.append(Attempt(manifest, binding))
        return self.attempts[-1]

    def finish(
        self, attempt: Attempt, outcome: ResultSucceeded | ResultFailed | NotDispatchedFact | None = None
    ) -> None:
        """The attempt's eligibility; it succeeded unless another outcome is given."""
        fact = execution_documents.eligibility_fact(attempt.manifest, outcome or ResultSucceeded(), finalized_at=MOMENT)
        with self.pipeline.connect(Database.EXECUTION) as connection:
            _ = execution.finalize_eligibility(connection, [fact])

    def usage(self, attempt: Attempt, quantity: str) -> None:
        """The provider reports this usage now, whatever it said before."""
        self._state(
            attempt, "provider_usage", USAGE, self._evidence(attempt, "provider_usage", USAGE, quantity, "token")
        )

    def cost(self, attempt: Attempt, amount: str) -> None:
        """The provider reports this cost now."""
        self._state(attempt, "provider_cost", COST, self._evidence(attempt, "provider_cost", COST, amount, "EUR"))

    def state_usage(self, attempt: Attempt, report: Report) -> None:
        """The next statement about the attempt's usage."""
        self._state(attempt, "provider_usage", USAGE, report)

    def close(self) -> None:
        """The run's attempt set is closed."""
        with self.pipeline.connect(Database.EXECUTION) as connection:
            _ = execution.close_run(connection, self.run_id, closed_at=MOMENT)

    def _evidence(
        self, attempt: Attempt, kind: ProviderEvidenceKind, dimension: str, value: str, measure: str
    ) -> Report:
        record = sha256(f"{attempt.id}:{kind}:{value}:{uuid4()}".encode()).hexdigest()
        return gateway_documents.evidence(
            attempt.binding,
            kind,
            dimension,
            value=value,
            measure=measure,
            provider_record_digest=record,
            observed_at=MOMENT,
        )

    def _state(self, attempt: Attempt, kind: ProviderEvidenceKind, dimension: str, report: Report) -> None:
        statement = gateway_documents.Statement(attempt.manifest, attempt.binding, kind, dimension, report)
        with self.pipeline.connect(Database.GATEWAY) as connection:
            _ = gateway.advance_availability(connection, [statement], recorded_at=MOMENT)
