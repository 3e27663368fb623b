"""What the parties of a scene hold: a credential, an attempt, a delivery, each with its secret."""

from __future__ import annotations

from dataclasses import dataclass, field

from orbit.access.token import TokenDigest, digest_of


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential as its holder knows it."""

    credential_id: str
    token: str = field(repr=False)

    @property
    def digest(self) -> TokenDigest:
        """What the services take."""
        digest = digest_of(self.token)
        assert digest is not None
        return digest

    @property
    def sha256(self) -> bytes:
        """What the database functions take."""
        return self.digest.sha256


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt as its worker knows it."""

    task_id: str
    attempt_id: str
    number: int
    input_json: str
    secret: str = field(repr=False)
    secret_sha256: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Lease:
    """A delivery as its consumer knows it."""

    delivery_id: str
    event_id: str
    event_type: str
    event_sequence: int
    lease_epoch: int
    attempts: int
    attempt_budget: int
    snapshot_json: str
    secret: str = field(repr=False)
    secret_sha256: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Claimed:
    """What one claim of deliveries answered."""

    reason: str
    scan_again: bool
    pending_count: int
    leases: list[Lease]
