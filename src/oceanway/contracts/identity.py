"""Deterministic identifiers, and the identity of a content-addressed object inside another one (REF-02, section 0.2).

A *quad* is reference, schema version, digest algorithm version and digest; a *quint* adds the state version.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from seapost.contracts.canonical import encode
from seapost.contracts.content_addressed import Quad
from seapost.contracts.digest import ALGORITHM, sha256_hex

if TYPE_CHECKING:
    from pydantic import BaseModel

    from seapost.contracts.examination import JSONValue

__all__ = ["ALGORITHM", "Quad", "Quint", "det", "digest_of", "quad_fields", "quad_of", "quint_fields", "quint_of"]


@dataclass(frozen=True, slots=True, order=True)
class Quint:
    """A quad with the state version of the object; always compared as a whole."""

    ref: str
    schema_version: str
    digest_algorithm_version: str
    digest: str
    state_version: int

    @property
    def quad(self) -> Quad:
        """The quad alone."""
        return Quad(self.ref, self.schema_version, self.digest_algorithm_version, self.digest)


def det(kind: str, *parts: JSONValue) -> str:
    """The deterministic identifier of a kind and its parts: the same everywhere, without a registry (REF-02)."""
    return f"{kind}_{sha256(encode([kind, *parts])).hexdigest()}"


def digest_of(value: JSONValue) -> str:
    """The `jcs-sha256-v1` digest of a value, in hexadecimal (REF-02)."""
    return sha256_hex(encode(value))


def quad_fields(prefix: str, quad: Quad) -> dict[str, Any]:
    """A quad as the four Python fields of the object that carries it, such as `meter_event_ref`."""
    return {
        f"{prefix}_ref": quad.ref,
        f"{prefix}_schema_version": quad.schema_version,
        f"{prefix}_digest_algorithm_version": quad.digest_algorithm_version,
        f"{prefix}_digest": quad.digest,
    }


def quad_of(carrier: BaseModel, prefix: str) -> Quad:
    """The quad that an object carries under this prefix."""
    return Quad(
        getattr(carrier, f"{prefix}_ref"),
        getattr(carrier, f"{prefix}_schema_version"),
        getattr(carrier, f"{prefix}_digest_algorithm_version"),
        getattr(carrier, f"{prefix}_digest"),
    )


def quint_fields(prefix: str, quint: Quint, *, state_version: str | None = None) -> dict[str, Any]:
    """A quint as five Python fields; `state_version` names the fifth where it does not follow the prefix."""
    return {**quad_fields(prefix, quint.quad), state_version or f"{prefix}_state_version": quint.state_version}


def quint_of(carrier: BaseModel, prefix: str, *, state_version: str | None = None) -> Quint:
    """The quint that an object carries under this prefix; see `quint_fields`."""
    quad = quad_of(carrier, prefix)
    version = getattr(carrier, state_version or f"{prefix}_state_version")
    return Quint(quad.ref, quad.schema_version, quad.digest_algorithm_version, quad.digest, version)
