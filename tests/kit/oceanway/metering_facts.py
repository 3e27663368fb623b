"""Attempts as execution and the gateway know them: manifests, ends of attempts, and chains of evidence.

```python
attempt = new_attempt(charges={"tokens": "tokens"}, costs=("spend",))
event = attempt.end()  # the eligibility event: succeeded
event = attempt.report("provider_usage", "tokens", "available", "12")  # revision 1 of the chain
```

Everything an attempt has said is in `facts`, by reference, so that a peer can answer from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID, uuid4

from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.events import AttemptEligibilityFinalized, GatewayEvidenceAvailabilityCurrentChanged
from oceanway.contracts.facts.execution import AttemptExecutionManifest, ExecutionEligibilityFact
from oceanway.contracts.facts.gateway import (
    AttemptRouteBinding,
    GatewayEvidence,
    GatewayEvidenceAvailabilitySnapshot,
    GatewayEvidenceConflictFact,
    GatewayRouteSnapshot,
)
from oceanway.metering.documents import ATTEMPT, Document, Sealed, named, part, quad, quint, seal
from seapost.contracts.envelope import Tenant

MOMENT: Final = "2026-06-01T10:00:00.000000Z"
USAGE: Final = "provider_usage"
COST: Final = "provider_cost"


@dataclass(frozen=True, slots=True)
class Told:
    """An event on its way to metering."""

    event_id: UUID
    envelope: bytes


@dataclass
class Attempt:
    """One attempt and everything that its owners have recorded about it."""

    manifest: Document
    binding: Document
    route: Document
    fact: Document | None = None
    chains: dict[tuple[str, str], list[Document]] = field(default_factory=dict[tuple[str, str], list[Document]])
    evidence: dict[str, Document] = field(default_factory=dict[str, Document])
    conflicts: dict[str, Document] = field(default_factory=dict[str, Document])

    @property
    def ref(self) -> str:
        """The identifier of the attempt."""
        return str(self.manifest["executionAttemptId"])

    @property
    def deployment(self) -> str:
        """The deployment it is bound to."""
        return str(self.binding["gatewayDeploymentId"])

    def end(self, result: str = "succeeded", *, event_id: UUID | None = None) -> Told:
        """End the attempt (`succeeded`, `failed` or `not_dispatched`); the event that says so."""
        if result == "not_dispatched":
            undispatched = {"reasonCode": "no_route", "decidedAt": MOMENT}
            disposition: Document = {"kind": "not_dispatched", "notDispatchedFact": undispatched}
        else:
            failure = (
                {"failureFact": {"reasonCode": "provider_failed", "failedAt": MOMENT}} if result == "failed" else {}
            )
            disposition = {
                "kind": "gateway_bound",
                "gatewayDeploymentId": self.deployment,
                **quad("attemptRouteBinding", self.binding),
                "result": {"state": result, **failure},
            }
        self.fact = seal(
            ExecutionEligibilityFact,
            {
                "executionEligibilityFactRef": f"eligibility:{self.ref}",
                **part(self.manifest, ATTEMPT),
                **quad("attemptExecutionManifest", self.manifest),
                "disposition": disposition,
                "finalizedAt": MOMENT,
            },
        ).document
        return self.eligibility_event(event_id=event_id)

    def eligibility_event(self, *, event_id: UUID | None = None, **changes: str) -> Told:
        """The event that the attempt has ended; `changes` falsify it."""
        assert self.fact is not None
        payload = AttemptEligibilityFinalized.decode(
            {
                **part(self.manifest, ATTEMPT),
                **quad("attemptExecutionManifest", self.manifest),
                **quad("executionEligibilityFact", self.fact),
                **changes,
            }
        )
        return self._told(payload, event_id)

    def report(
        self, kind: str, dimension: str, state: str, value: str = "1", *, unit: str = "token", currency: str = "EUR"
    ) -> Told:
        """Append a snapshot to a chain and return the event that announces it."""
        chain = self.chains.setdefault((kind, dimension), [])
        before = chain[-1] if chain else None
        version = len(chain) + 1
        availability: Document = {"state": state}
        if state == "available":
            evidence = self._observe(kind, dimension, value, unit=unit, currency=currency)
            availability |= quad("gatewayEvidence", evidence)
        elif state == "unavailable":
            availability["stateReasonCode"] = "provider_record_missing"
        elif state == "conflicting":
            availability["stateReasonCode"] = "provider_records_differ"
            availability |= quad("gatewayEvidenceConflictFact", self.conflict(kind, dimension))
        predecessor: Document = {"state": "none"}
        if before is not None:
            predecessor = {"state": "present", **quint("gatewayEvidenceAvailabilitySnapshot", before)}
        snapshot = seal(
            GatewayEvidenceAvailabilitySnapshot,
            {
                "gatewayEvidenceAvailabilitySnapshotRef": f"availability:{self.ref}:{kind}:{dimension}:{version}",
                "gatewayEvidenceAvailabilitySnapshotStateVersion": version,
                "executionAttemptId": self.ref,
                "gatewayDeploymentId": self.deployment,
                **self._quads(),
                "providerEvidenceKind": kind,
                "evidenceDimensionKey": dimension,
                "predecessor": predecessor,
                "availability": availability,
                "recordedAt": MOMENT,
            },
        ).document
        chain.append(snapshot)
        return self.availability_event(snapshot)

    def availability_event(self, snapshot: Document, *, event_id: UUID | None = None, **changes: Any) -> Told:
        """The event that announces a snapshot; `changes` falsify it."""
        payload = GatewayEvidenceAvailabilityCurrentChanged.decode(
            {
                **part(
                    snapshot,
                    ("executionAttemptId", "gatewayDeploymentId", "providerEvidenceKind", "evidenceDimensionKey"),
                ),
                **self._quads(),
                **quint("currentAvailability", snapshot, "gatewayEvidenceAvailabilitySnapshot"),
                **changes,
            }
        )
        return self._told(payload, event_id)

    def conflict(self, kind: str, dimension: str) -> Document:
        """The fact that claims about the evidence of a chain exclude each other."""
        ref = f"conflict:{self.ref}:{kind}:{dimension}"
        if ref not in self.conflicts:
            self.conflicts[ref] = seal(
                GatewayEvidenceConflictFact,
                {
                    "gatewayEvidenceConflictFactRef": ref,
                    "executionAttemptId": self.ref,
                    "gatewayDeploymentId": self.deployment,
                    "providerEvidenceKind": kind,
                    "evidenceDimensionKey": dimension,
                    **conflict_body(),
                },
            ).document
        return self.conflicts[ref]

    def _observe(self, kind: str, dimension: str, value: str, *, unit: str, currency: str) -> Document:
        ref = f"evidence:{self.ref}:{kind}:{dimension}:{value}:{unit}:{currency}"
        measure = {"unit": unit} if kind == USAGE else {"currency": currency}
        self.evidence[ref] = seal(
            GatewayEvidence,
            {
                "gatewayEvidenceRef": ref,
                "kind": kind,
                "dimension": dimension,
                "value": value,
                **measure,
                "providerRecordDigest": "a" * 64,
                "observedAt": MOMENT,
            },
        ).document
        return self.evidence[ref]

    def _quads(self) -> Document:
        return {
            **quad("attemptExecutionManifest", self.manifest),
            **quad("attemptRouteBinding", self.binding),
            **quad("gatewayRouteSnapshot", self.route),
        }

    def _told(
        self, payload: AttemptEligibilityFinalized | GatewayEvidenceAvailabilityCurrentChanged, event_id: UUID | None
    ) -> Told:
        manifest = self.manifest
        tenant = Tenant(
            manifest["tenantKind"], manifest["tenantId"], manifest["workspaceId"], manifest.get("projectId")
        )
        prepared = envelope_of(payload, event_id=event_id, correlation_id=manifest["runId"], tenant=tenant)
        return Told(prepared.event_id, prepared.envelope)


def conflict_body() -> Document:
    """What every conflict fact says besides its subject."""
    return {
        "conflictKind": "evidence",
        "conflictingCandidateDigestAlgorithmVersion": "jcs-sha256-v1",
        "conflictingCandidateDigest": "c" * 64,
        "reasonCode": "evidence_differs",
        "detectedAt": MOMENT,
    }


def _route(costs: tuple[str, ...], run: str) -> Sealed:
    return seal(
        GatewayRouteSnapshot,
        {
            "gatewayRouteSnapshotRef": f"route:{run}",
            "routeId": "route-1",
            "providerKey": "provider",
            "costDimensions": [
                {"sourceEvidenceDimensionKey": key, "currency": "EUR", "costMappingVersion": "1"}
                for key in sorted(costs)
            ],
            "capturedAt": MOMENT,
        },
    )


def new_attempt(
    *,
    charges: dict[str, str] | None = None,
    costs: tuple[str, ...] = ("spend",),
    unit: str = "token",
    run: str | None = None,
) -> Attempt:
    """Make an attempt that is bound to a gateway; `charges` says which usage dimension each charge is made from."""
    run = run or f"run-{uuid4().hex}"
    attempt = f"attempt-{uuid4().hex}"
    route = _route(costs, attempt)
    binding = seal(
        AttemptRouteBinding,
        {
            "attemptRouteBindingRef": f"binding:{attempt}",
            **named("gatewayRouteSnapshot", route.quad),
            "executionAttemptId": attempt,
            "gatewayDeploymentId": "deployment-1",
            "routeId": "route-1",
            "boundAt": MOMENT,
        },
    )
    manifest = seal(
        AttemptExecutionManifest,
        {
            "attemptExecutionManifestRef": f"manifest:{attempt}",
            "tenantKind": "organization",
            "tenantId": "tenant-1",
            "workspaceId": "workspace-1",
            "billingAccountId": "account-1",
            "billingReservationId": f"reservation-{run}",
            "runId": run,
            "runStepId": f"{run}-step",
            "executionAttemptId": attempt,
            "gatewayBinding": {
                "state": "bound",
                "gatewayDeploymentId": "deployment-1",
                **named("attemptRouteBinding", binding.quad),
            },
            "chargeDimensions": [
                {
                    "chargeDimensionKey": charge,
                    "usageDimensionKey": usage,
                    "quantityUnit": unit,
                    "currency": "EUR",
                    "priceBookRef": "book",
                    "priceBookVersion": "1",
                }
                for charge, usage in sorted((charges or {"generation": "tokens"}).items())
            ],
            "costDimensionKeys": sorted(costs),
            "createdAt": MOMENT,
        },
    )
    return Attempt(manifest.document, binding.document, route.document)


def conflict_quad(prefix: str) -> Document:
    """The quad of some conflict fact, by wire names."""
    return {
        f"{prefix}Ref": f"{prefix}-1",
        f"{prefix}SchemaVersion": "1",
        f"{prefix}DigestAlgorithmVersion": "jcs-sha256-v1",
        f"{prefix}Digest": "b" * 64,
    }
