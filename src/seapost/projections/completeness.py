"""How complete a version of a projection is: proved over one snapshot, and compared with that proof later.

```python
proof = prove(connection, orders)  # as the verifier
answer = compare(connection, orders)  # as anybody who may read it
```

Authority: the database's own snapshot. A proof speaks of that moment only (ORD-10); a later reader gets
`verified_current` exactly when every input is still what it was, and never an answer from a position or a highest
number (ORD-04). The semantic check of the projection looks at the view in the same snapshot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from psycopg import IsolationLevel

from seapost.contracts.canonical import check_canonical
from seapost.model.errors import ContractError, InvalidSetting
from seapost.projections.sense import Sense
from seapost.store import completeness as store
from seapost.telemetry import metrics

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.projections.projection import Projection

COMPLETE: Final = "complete_for_supported_scope"
SEMANTIC_VERSION: Final = "1"
_NOTHING_ASKED: Final = Sense(passed=True, digest=hashlib.sha256(b"").hexdigest())


@dataclass(frozen=True, slots=True)
class Proof:
    """A manifest, CompletenessProofManifest@1.

    Attributes:
        document: its content.
        canonical: its canonical bytes.
    """

    document: dict[str, Any]
    canonical: bytes

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes."""
        return hashlib.sha256(self.canonical).digest()

    @property
    def result(self) -> str:
        """`complete_for_supported_scope`, `partial_source_gap` or `unknown`."""
        return str(self.document["result"])

    @property
    def is_complete(self) -> bool:
        """Whether everything in the supported scope was folded, at the moment of the proof."""
        return self.result == COMPLETE


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a later look says of the last proof (ORD-11 to ORD-14).

    Attributes:
        verification_state: `verified` or `unverified`.
        snapshot_currency: `verified_current`, `stale` or `unknown`.
        completeness: `complete_for_supported_scope`, `partial_source_gap` or `unknown`.
        integrity: `passed`, `failed` or None.
        reason: `no_completed_snapshot`, `definition_not_comparable`, `guard_unavailable` or None.
        snapshot_id, evaluated_at: of the proof; None when there is none to compare with.
    """

    verification_state: str
    snapshot_currency: str
    completeness: str
    integrity: str | None
    reason: str | None
    snapshot_id: str | None
    evaluated_at: str | None


def prove(connection: Connection[Any], projection: Projection, *, rehash: bool = False) -> Proof:
    """Prove how complete a version is, in a transaction of its own; needs the verifier's role.

    The metric of events that were not applied shows what it found (MET-04).

    Args:
        rehash: read every envelope and receipt again, instead of trusting the digests beside them.

    Raises:
        InvalidSetting: the connection is inside a transaction.
    """
    with _snapshot(connection):
        semantic = _semantic(connection, projection)
        if semantic is None:
            raise InvalidSetting(f"The semantic check of {projection.target.name} cannot be carried out.")
        manifest = store.prove(connection, target=projection.target, semantic=semantic, rehash=rehash)
    document = check_canonical(manifest)
    if not isinstance(document, dict):
        message = "The manifest is no object"
        raise ContractError(message, rule="manifest")
    metrics.receipts_missing(projection.inbox.name, int(str(document["eventReceiptAntiJoin"])))
    return Proof(dict(document), manifest)


def compare(connection: Connection[Any], projection: Projection) -> Comparison:
    """Compare a version with its last proof, in a read-only transaction of its own.

    A semantic check that raises makes the answer `unverified` with the reason `guard_unavailable` (ORD-14).
    """
    with _snapshot(connection):
        semantic = _semantic(connection, projection)
        found = store.query(connection, target=projection.target, semantic=semantic)
    moment: dict[str, str] = found["completenessAsOf"] or {}
    return Comparison(
        verification_state=found["verificationState"],
        snapshot_currency=found["snapshotCurrency"],
        completeness=found["projectionCompleteness"],
        integrity=found["integrity"],
        reason=found["verificationReason"],
        snapshot_id=moment.get("snapshotId"),
        evaluated_at=moment.get("evaluatedAt"),
    )


@contextmanager
def _snapshot(connection: Connection[Any]) -> Generator[None]:
    """One snapshot for everything inside."""
    if connection.info.transaction_status != connection.info.transaction_status.IDLE:
        raise InvalidSetting("A proof takes a snapshot of its own; the connection is inside a transaction.")
    before = connection.isolation_level
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    try:
        with connection.transaction():
            yield
    finally:
        connection.isolation_level = before


def _semantic(connection: Connection[Any], projection: Projection) -> dict[str, str] | None:
    """What the semantic check of the projection finds, and which check that is; None when it cannot be carried out."""
    check = projection.semantic_check
    name = "none" if check is None else f"{check.__module__}.{check.__qualname__}"
    try:
        with connection.transaction():
            sense = _NOTHING_ASKED if check is None else check(connection)
    except Exception:  # noqa: BLE001 - a check may raise anything: then nothing is known
        return None
    return {
        "id": name,
        "version": SEMANTIC_VERSION,
        "digest": hashlib.sha256(f"{name}@{SEMANTIC_VERSION}".encode()).hexdigest(),
        "state": "passed" if sense.passed else "failed",
        "resultDigest": sense.digest,
    }
