"""The manifest of an event's attempt: read before the transaction, compared with the event, and kept by its digest.

A manifest never changes, so what was read once for a digest is not read again by this process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from oceanway.metering.documents import ATTEMPT, QUAD, Document, part
from oceanway.metering.lanes import COST_SOURCE
from oceanway.metering.owners import Owners
from seapost.contracts.canonical import encode
from seapost.model.errors import Reject, Retry
from seapost.model.outcome import ErrorCode

if TYPE_CHECKING:
    from oceanway.reads.client import Reader
    from seapost.inbox.deciding import Arrived

KEPT_MAX: Final = 4096
"""Manifests kept in memory; the least recently used one goes first."""

_MANIFEST: Final = tuple(f"attemptExecutionManifest{name}" for name in QUAD)
_BINDING: Final = ("gatewayDeploymentId", *(f"attemptRouteBinding{name}" for name in QUAD))


@dataclass(frozen=True, slots=True)
class KnownManifest:
    """A manifest that fits its event."""

    document: Document
    data: bytes


class Manifests:
    """Prepares events: one call to execution for all of a batch that are not known yet (AMB-35)."""

    def __init__(self, reader: Reader) -> None:
        self._owners = Owners(reader)
        self._kept: OrderedDict[str, KnownManifest] = OrderedDict()
        self._lock = Lock()

    def for_eligibility(self, items: Sequence[Arrived]) -> list[object]:
        """The manifests of eligibility events, read for the purpose `metering_execution_eligibility` (RCP-15)."""
        return self._prepare(items, self._owners.manifests_for_eligibility, _differs_from_attempt)

    def for_availability(self, items: Sequence[Arrived]) -> list[object]:
        """The manifests of availability events, read for the purpose `metering_gateway_availability` (RCP-18)."""
        return self._prepare(items, self._owners.manifests_for_availability, _differs_from_chain)

    def _prepare(
        self,
        items: Sequence[Arrived],
        ask: Callable[[Sequence[Arrived]], list[Document | Retry | Reject]],
        differs: Callable[[Document, Document], bool],
    ) -> list[object]:
        payloads = [item.event.to_json() for item in items]
        found: list[object] = [self._known(payload) for payload in payloads]
        missing = [at for at, one in enumerate(found) if one is None]
        answers = ask([items[at] for at in missing]) if missing else []
        for at, answer in zip(missing, answers, strict=True):
            found[at] = self._keep(answer) if isinstance(answer, dict) else answer
        for at, payload in enumerate(payloads):
            one = found[at]
            if isinstance(one, KnownManifest) and differs(payload, one.document):
                found[at] = Reject(
                    "The event does not fit the manifest of its attempt", code=ErrorCode.IDENTITY_CONFLICT
                )
        return found

    def _known(self, payload: Document) -> KnownManifest | None:
        """Kept by digest; whether the rest of the quad fits is compared like that of one just read."""
        digest = payload["attemptExecutionManifestDigest"]
        with self._lock:
            known = self._kept.get(digest)
            if known is not None:
                self._kept.move_to_end(digest)
            return known

    def _keep(self, document: Document) -> KnownManifest:
        known = KnownManifest(document, encode(document))
        with self._lock:
            self._kept[document["attemptExecutionManifestDigest"]] = known
            while len(self._kept) > KEPT_MAX:
                _ = self._kept.popitem(last=False)
        return known


def _differs_from_attempt(payload: Document, manifest: Document) -> bool:
    names = (*ATTEMPT, *_MANIFEST)
    return part(payload, names) != part(manifest, names)


def _differs_from_chain(payload: Document, manifest: Document) -> bool:
    names = ("executionAttemptId", *_MANIFEST)
    if part(payload, names) != part(manifest, names):
        return True
    return part(payload, _BINDING) != part(manifest["gatewayBinding"], _BINDING) or not _has_dimension(
        payload, manifest
    )


def _has_dimension(payload: Document, manifest: Document) -> bool:
    """Whether the attempt has this usage or cost dimension at all (RCP-34)."""
    dimension: Any = payload["evidenceDimensionKey"]
    if payload["providerEvidenceKind"] == COST_SOURCE:
        return dimension in manifest["costDimensionKeys"]
    return any(item["usageDimensionKey"] == dimension for item in manifest["chargeDimensions"])
