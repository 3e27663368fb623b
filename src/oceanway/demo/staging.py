"""The plan of a run as documents: manifests, routes and bindings, the same whenever they are made again."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from oceanway.contracts.facts.execution import ChargeDimension
from oceanway.contracts.facts.gateway import CostDimension
from oceanway.contracts.facts.settlement import settlement_dimension_id
from oceanway.contracts.subject import RunFields
from oceanway.core import transactions as core
from oceanway.demo.plan import CURRENCY, PRICE_BOOK
from oceanway.execution import documents as attempts_of
from oceanway.gateway import documents as reports_of
from seapost.contracts.identifiers import write_timestamp

if TYPE_CHECKING:
    from oceanway.contracts.facts.admission import RunAdmissionManifest
    from oceanway.contracts.facts.execution import AttemptExecutionManifest
    from oceanway.contracts.facts.gateway import AttemptRouteBinding, GatewayRouteSnapshot
    from oceanway.demo.plan import PlannedAttempt, PlannedRun

DEPLOYMENT: Final = "deployment-1"
PROVIDER: Final = "provider-1"
DAWN: Final = datetime(2026, 3, 2, 6, tzinfo=UTC)
"""When the planned day begins; what is part of a fact's identity is counted from here, not from the clock."""
DAY_SECONDS: Final = 36_000


@dataclass(frozen=True, slots=True)
class Staged:
    """A planned attempt with its documents; `binding` is None for one without a gateway."""

    plan: PlannedAttempt
    manifest: AttemptExecutionManifest
    route: GatewayRouteSnapshot | None
    binding: AttemptRouteBinding | None


@dataclass(slots=True)
class StagedRun:
    """A planned run with its documents."""

    plan: PlannedRun
    manifest: RunAdmissionManifest
    attempts: list[Staged] = field(default_factory=list[Staged])

    @property
    def run_id(self) -> str:
        """Run id."""
        return self.manifest.run_id

    @property
    def first_dimension(self) -> str:
        """The settlement dimension of the first attempt's first charge: where trouble strikes."""
        first = self.attempts[0].plan
        key = self.plan.charges[0].key
        return settlement_dimension_id(self.manifest.billing_reservation_id, first.step_id, first.id, key)


def now() -> str:
    """This moment, as facts state it."""
    return write_timestamp(datetime.now(UTC))


def account_id(number: int) -> str:
    """The account of a number."""
    return f"account-{number:04d}"


def stage(run: PlannedRun) -> StagedRun:
    """The documents of a run."""
    moment = now()
    subject = RunFields(
        tenant_kind="organization",
        tenant_id=f"tenant-{run.account % 7}",
        workspace_id="main",
        billing_account_id=account_id(run.account),
        billing_reservation_id=f"reservation-{run.name}",
        run_id=f"run-{run.name}",
    )
    keys = [charge.key for charge in run.charges]
    manifest = core.admission_manifest(subject, steps=dict.fromkeys(run.steps, keys), created_at=moment)
    staged = StagedRun(run, manifest)
    staged.attempts = [_stage_attempt(run, manifest, attempt, moment) for attempt in run.attempts]
    return staged


def _stage_attempt(run: PlannedRun, manifest: RunAdmissionManifest, attempt: PlannedAttempt, moment: str) -> Staged:
    costs = [chain.dimension for chain in attempt.chains if chain.kind == "provider_cost"]
    route = binding = None
    if attempt.outcome != "not_dispatched":
        mapped = [
            CostDimension(source_evidence_dimension_key=key, currency=CURRENCY, cost_mapping_version="1")
            for key in costs
        ]
        route = reports_of.route_snapshot(
            "route-cost" if costs else "route-plain", PROVIDER, mapped, captured_at=moment
        )
        binding = reports_of.route_binding(
            route, execution_attempt_id=attempt.id, gateway_deployment_id=DEPLOYMENT, bound_at=moment
        )
    book, version = PRICE_BOOK
    charges = [
        ChargeDimension(
            charge_dimension_key=charge.key,
            usage_dimension_key=charge.usage,
            quantity_unit=charge.unit,
            currency=CURRENCY,
            price_book_ref=book,
            price_book_version=version,
        )
        for charge in run.charges
    ]
    made = attempts_of.attempt_manifest(
        manifest,
        run_step_id=attempt.step_id,
        execution_attempt_id=attempt.id,
        binding=binding,
        charge_dimensions=charges,
        cost_dimension_keys=costs,
        created_at=moment,
    )
    return Staged(attempt, made, route, binding)
