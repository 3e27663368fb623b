"""Tokens and secrets: made here, shown once, and from then on known by their SHA-256 only (AUT-14, LSE-02)."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Final

TOKEN_PREFIX: Final = "orbit_"  # noqa: S105 - the public part
SECRET_BYTES: Final = 32
_TOKEN: Final = re.compile(r"orbit_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class TokenDigest:
    """The SHA-256 of a token: all that the server keeps of it. Not shown, since it is what the database compares."""

    sha256: bytes = field(repr=False)


def new_token() -> str:
    """Make a token: `orbit_` and 43 base64url characters."""
    return TOKEN_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def digest_of(token: str) -> TokenDigest | None:
    """Digest a token that a caller sent; None when it has not the form of one, so nobody need ask the database."""
    if _TOKEN.fullmatch(token) is None:
        return None
    return TokenDigest(hashlib.sha256(token.encode("ascii")).digest())


def new_secret() -> tuple[str, bytes]:
    """Make a lease secret: its 43 base64url characters, which go out once, and their SHA-256, which is stored."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    return secret, secret_digest(secret)


def secret_digest(secret: str) -> bytes:
    """Digest a secret as it is stored: the SHA-256 of its characters; a wrong one just matches nothing."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
