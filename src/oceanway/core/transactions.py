"""What core does in one transaction: admit runs (TX-09). The caller owns the transaction; nothing here commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.events.core import RunCreated, WalletReserved
from oceanway.contracts.facts.admission import AdmittedStep, RunAdmissionManifest
from oceanway.contracts.identity import det, quad_fields
from oceanway.contracts.subject import RunFields
from oceanway.core import store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from psycopg import Connection

    from seapost.contracts.envelope import PreparedEvent


@dataclass(frozen=True, slots=True)
class RunAdmission:
    """What is to be admitted.

    Attributes:
        manifest: the run's steps and what each may be charged for; billing admits the same one before.
        reserved_amount: decimal text in canonical form, more than zero.
        currency: ISO 4217.
    """

    manifest: RunAdmissionManifest
    reserved_amount: str
    currency: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """What core holds about an admitted run: of this admission, or of the first one.

    Attributes:
        is_new: this call admitted it.
    """

    manifest: RunAdmissionManifest
    run_created_event_id: UUID
    wallet_reserved_event_id: UUID
    is_new: bool


def admission_manifest(
    subject: RunFields, *, steps: Mapping[str, Sequence[str]], created_at: str
) -> RunAdmissionManifest:
    """The manifest of a run (REF-17).

    Args:
        steps: of each step the keys of its charge dimensions, in any order.
        created_at: RFC 3339 in UTC with microseconds; not part of the manifest's identity.

    Raises:
        ContractError: there is no step, or one without a charge dimension.
    """
    return RunAdmissionManifest.assemble(
        run_admission_manifest_ref=det("run_admission_manifest", subject.run_id),
        **_subject(subject),
        steps=[AdmittedStep(run_step_id=step, charge_dimension_keys=sorted(steps[step])) for step in sorted(steps)],
        created_at=created_at,
    )


def admit(connection: Connection[Any], admission: RunAdmission) -> Admitted:
    """Admit one run; see `admit_many`."""
    (admitted,) = admit_many(connection, [admission])
    return admitted


def admit_many(connection: Connection[Any], admissions: Sequence[RunAdmission]) -> list[Admitted]:
    """Admit runs, all or none, each with its two events; a run admitted before changes nothing (TX-09, REF-15).

    Raises:
        OwnerConflict: the run or its reservation has another admission.
        ContractError: an amount or a currency breaks its rule.
    """
    run_events = [_run_created(admission.manifest) for admission in admissions]
    wallet_events = [
        _wallet_reserved(admission, run_event) for admission, run_event in zip(admissions, run_events, strict=True)
    ]
    rows = store.admit(
        connection,
        manifests=[admission.manifest.canonical() for admission in admissions],
        run_events=[event.envelope for event in run_events],
        wallet_events=[event.envelope for event in wallet_events],
    )
    return [
        Admitted(
            admission.manifest if is_new else RunAdmissionManifest.decode(document), run_event, wallet_event, is_new
        )
        for admission, (document, run_event, wallet_event, is_new) in zip(admissions, rows, strict=True)
    ]


def _run_created(manifest: RunAdmissionManifest) -> PreparedEvent:
    event = RunCreated(
        **_subject(manifest),
        **quad_fields("run_admission_manifest", manifest.quad()),
        run_step_ids=[step.run_step_id for step in manifest.steps],
        admitted_at=manifest.created_at,
    )
    return envelope_of(event, correlation_id=manifest.run_id)


def _wallet_reserved(admission: RunAdmission, run_event: PreparedEvent) -> PreparedEvent:
    event = WalletReserved(
        **_subject(admission.manifest),
        reserved_amount=admission.reserved_amount,
        currency=admission.currency,
        reservation_state_version=1,
    )
    return envelope_of(event, correlation_id=admission.manifest.run_id, causation_id=str(run_event.event_id))


def _subject(carrier: RunFields) -> dict[str, Any]:
    """Tenant, account, reservation and run, as every document of the run repeats them."""
    return {name: getattr(carrier, name) for name in RunFields.model_fields}
