"""The one digest of Seapost: SHA-256 over canonical JSON, named `jcs-sha256-v1` (REF-02)."""

from __future__ import annotations

from hashlib import sha256

from seapost.contracts.canonical import encode

ALGORITHM = "jcs-sha256-v1"


def sha256_hex(data: bytes) -> str:
    """SHA-256 of exact bytes as 64 lower-case hexadecimal characters."""
    return sha256(data).hexdigest()


def digest_of(value: object) -> str:
    """The `jcs-sha256-v1` digest of a JSON value; raises `CanonicalError` when it has no canonical form."""
    return sha256_hex(encode(value))


def det(kind: str, *parts: object) -> str:
    """A deterministic identifier: the kind, an underscore, and the digest of kind and parts (REF-02).

    The same arguments give the same identifier in every process and language, so a repeated command
    finds the row of the first one.
    """
    return f"{kind}_{digest_of([kind, *parts])}"
