"""Workload tokens: who calls, for which consumer, for exactly which call (REF-11).

A token is a JWT signed with Ed25519 (RFC 8037) that lives at most a minute. Its `bindings` repeat the
arguments of the one call it is for, and the receiver compares them field by field with the call it got. A
stolen token can therefore only repeat that same call, and repeating a delivery changes nothing.

Audience, scope and purpose are exact strings: there is no wildcard, no list and no hierarchy. No error
message ever contains a token or a part of one.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, cast
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from seapost.model.errors import InvalidSetting, InvalidToken

ALGORITHM: Final = "EdDSA"
LIFETIME_SECONDS_MAX: Final = 60
LEEWAY_SECONDS: Final = 5
TOKEN_LENGTH_MAX: Final = 4_096
TEXT_LENGTH_MAX: Final = 200

DELIVER_SCOPE: Final = "seapost.deliver"
DELIVER_PURPOSE: Final = "deliver"
RECEIPT_SCOPE: Final = "seapost.receipt.read"
RECEIPT_PURPOSE: Final = "receipt_read"

Bindings = Mapping[str, str | int]

_REQUIRED: Final = ("iss", "sub", "aud", "scope", "purpose", "exp", "iat", "jti", "bindings")
_TEXTS: Final = ("iss", "sub", "aud", "scope", "purpose", "jti")


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """What an authentic token says; it allows nothing before `require` has compared it with the call."""

    issuer: str
    workload: str
    audience: str
    scope: str
    purpose: str
    token_id: str
    bindings: Bindings

    def require(self, *, audience: str, scope: str, purpose: str, bindings: Bindings) -> None:
        """Raise `InvalidToken` unless the token is for exactly this call."""
        for name, stated, expected in (
            ("audience", self.audience, audience),
            ("scope", self.scope, scope),
            ("purpose", self.purpose, purpose),
        ):
            if not _equal(stated, expected):
                raise InvalidToken(f"The workload token has another {name}")
        if self.bindings.keys() != bindings.keys():
            raise InvalidToken("The workload token does not bind exactly the arguments of this call")
        for name, expected in bindings.items():
            self.require_binding(name, expected)

    def require_binding(self, name: str, expected: str | int) -> None:
        """Raise `InvalidToken` unless the token binds this argument to this value."""
        if not _equal(self.bindings.get(name), expected):
            raise InvalidToken(f"The workload token is bound to another {name}")


class TokenSigner:
    """Mints tokens for one workload; the private key never leaves it and is in no representation of it.

    Args:
        issuer: name of the deployment that vouches for the workload.
        workload: the dispatcher's own identity, `sub` of its tokens.
    """

    def __init__(self, private_key: Ed25519PrivateKey, *, issuer: str, workload: str) -> None:
        self._private_key = private_key
        self._headers = {"kid": key_id(private_key.public_key())}
        self.issuer = issuer
        self.workload = workload

    def __repr__(self) -> str:
        return f"TokenSigner(issuer={self.issuer!r}, workload={self.workload!r})"

    def mint(
        self,
        *,
        audience: str,
        scope: str,
        purpose: str,
        bindings: Bindings,
        lifetime_seconds: int = LIFETIME_SECONDS_MAX,
        now: float | None = None,
    ) -> str:
        """A token for one call.

        Args:
            audience: consumer name.
            lifetime_seconds: 1 to 60.
            now: seconds since 1970; the clock by default.
        """
        if not 1 <= lifetime_seconds <= LIFETIME_SECONDS_MAX:
            raise InvalidSetting(f"A workload token lives 1 to {LIFETIME_SECONDS_MAX} seconds, not {lifetime_seconds}.")
        issued_at = int(time.time() if now is None else now)
        claims = {
            "iss": self.issuer,
            "sub": self.workload,
            "aud": audience,
            "scope": scope,
            "purpose": purpose,
            "iat": issued_at,
            "exp": issued_at + lifetime_seconds,
            "jti": uuid4().hex,
            "bindings": dict(bindings),
        }
        return jwt.encode(claims, self._private_key, algorithm=ALGORITHM, headers=self._headers)


class TokenVerifier:
    """Checks tokens against the public keys of one issuer.

    Args:
        public_keys: all keys in use; two of them while a key is rotated.
        workloads: the callers allowed; None allows every workload of the issuer.
    """

    def __init__(
        self, public_keys: Iterable[Ed25519PublicKey], *, issuer: str, workloads: Iterable[str] | None = None
    ) -> None:
        self._keys = {key_id(key): key for key in public_keys}
        if not self._keys:
            raise InvalidSetting("A token verifier needs at least one public key.")
        self.issuer = issuer
        self._workloads = None if workloads is None else frozenset(workloads)

    def verify(self, token: str) -> TokenClaims:
        """The claims of an authentic, unexpired token.

        Raises:
            InvalidToken: with the reason, never with the token.
        """
        if len(token) > TOKEN_LENGTH_MAX:
            raise InvalidToken("The workload token is too long")
        claims = _read_claims(token, self._key_of(token), self.issuer)
        for name in _TEXTS:
            text = claims[name]
            if not isinstance(text, str) or not 0 < len(text) <= TEXT_LENGTH_MAX:
                raise InvalidToken(f"The workload token has no valid {name}")
        issued_at, expires_at = claims["iat"], claims["exp"]
        if type(issued_at) is not int or type(expires_at) is not int:
            raise InvalidToken("The workload token's times are not whole seconds")
        if not 0 < expires_at - issued_at <= LIFETIME_SECONDS_MAX:
            raise InvalidToken(f"The workload token lives longer than {LIFETIME_SECONDS_MAX} seconds")
        if self._workloads is not None and claims["sub"] not in self._workloads:
            raise InvalidToken("The workload may not call this receiver")
        return TokenClaims(
            issuer=claims["iss"],
            workload=claims["sub"],
            audience=claims["aud"],
            scope=claims["scope"],
            purpose=claims["purpose"],
            token_id=claims["jti"],
            bindings=_read_bindings(claims["bindings"]),
        )

    def _key_of(self, token: str) -> Ed25519PublicKey:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise InvalidToken("The workload token is malformed") from None
        key = self._keys.get(str(header.get("kid")))
        if key is None:
            raise InvalidToken("The workload token is signed with a key unknown here")
        return key


def _read_claims(token: str, key: Ed25519PublicKey, issuer: str) -> dict[str, Any]:
    try:
        # The audience is compared by `TokenClaims.require`, exactly: PyJWT would also accept a list.
        return jwt.decode(
            token,
            key,
            algorithms=[ALGORITHM],
            issuer=issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": list(_REQUIRED), "verify_aud": False},
        )
    except jwt.ExpiredSignatureError:
        reason = "The workload token has expired"
    except jwt.ImmatureSignatureError:
        reason = "The workload token is not valid yet"
    except jwt.InvalidIssuerError:
        reason = "The workload token has another issuer"
    except jwt.MissingRequiredClaimError as error:
        reason = f"The workload token lacks {error.claim}"
    except jwt.InvalidSignatureError:
        reason = "The workload token's signature is wrong"
    except (jwt.PyJWTError, ValueError, TypeError):
        reason = "The workload token is malformed"
    raise InvalidToken(reason)


def _read_bindings(value: object) -> Bindings:
    if not isinstance(value, dict):
        raise InvalidToken("The workload token's bindings are no object")
    bindings = cast("dict[str, object]", value)
    if not all(type(item) in {str, int} for item in bindings.values()):
        raise InvalidToken("The workload token's bindings are not all strings and integers")
    return MappingProxyType(cast("dict[str, str | int]", bindings))


def _equal(stated: str | int | None, expected: str | int) -> bool:
    """Equality of type and value, in constant time for texts."""
    if type(stated) is not type(expected):
        return False
    return hmac.compare_digest(str(stated).encode(errors="surrogatepass"), str(expected).encode())


def delivery_bindings(*, destination: str, consumer_name: str, delivery_count: int, body: bytes) -> Bindings:
    """The bindings of a delivery call; the digest covers the exact bytes of the body."""
    return {
        "destination": destination,
        "consumerName": consumer_name,
        "deliveryCount": delivery_count,
        "requestSha256": sha256(body).hexdigest(),
    }


def key_id(public_key: Ed25519PublicKey) -> str:
    """The name of a key in token headers: derived from the key, so it needs no configuration."""
    return sha256(public_key.public_bytes_raw()).hexdigest()[:32]


def load_private_key(pem: bytes, password: bytes | None = None) -> Ed25519PrivateKey:
    """Read an Ed25519 private key (PKCS #8, PEM); raise InvalidSetting without quoting it."""
    try:
        key = serialization.load_pem_private_key(pem, password)
    except (ValueError, TypeError):
        raise InvalidSetting("The signing key cannot be read; it is an Ed25519 key in PEM form.") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidSetting("The signing key is no Ed25519 key.")
    return key


def load_public_key(pem: bytes) -> Ed25519PublicKey:
    """Read an Ed25519 public key (SubjectPublicKeyInfo, PEM); raise InvalidSetting when it is none."""
    try:
        key = serialization.load_pem_public_key(pem)
    except ValueError:
        raise InvalidSetting("The public key cannot be read; it is an Ed25519 key in PEM form.") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidSetting("The public key is no Ed25519 key.")
    return key
