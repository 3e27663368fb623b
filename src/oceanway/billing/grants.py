"""Signed grants: what operations decided becomes a command of billing only with one of them, once (REF-42, SEC-14).

A grant is a JWT signed with Ed25519, whose claims are exactly those of its contract. The caller must be the workload
that it is bound to. Whether the grant was consumed before, the database decides with everything else of the command.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import jwt

from seapost.model.errors import ContractError, InvalidToken
from seapost.transport.token import ALGORITHM, LEEWAY_SECONDS, key_id

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from seapost.contracts.content_addressed import ContentAddressed

G = TypeVar("G", bound="ContentAddressed")

GRANT_LENGTH_MAX: Final = 8_192

_SIGNATURE_ONLY: Final[Any] = {
    "verify_aud": False,
    "verify_iss": False,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_sub": False,
    "verify_jti": False,
}
"""Time, issuer and audience are claims of the contract, and are compared below."""


def sign_grant(claims: ContentAddressed, key: Ed25519PrivateKey) -> str:
    """The token of a grant; its claims are the complete document of the contract."""
    return jwt.encode(claims.to_json(), key, algorithm=ALGORITHM, headers={"kid": key_id(key.public_key())})


def verify_grant(
    token: str,
    keys: Iterable[Ed25519PublicKey],
    *,
    contract: type[G],
    caller: str,
    expected: Mapping[str, object],
    now: float | None = None,
) -> G:
    """The claims of an authentic, current grant that allows exactly this command to exactly this caller.

    Args:
        token: as operations signed it.
        keys: of operations; two while a key is rotated.
        contract: the grant's class.
        caller: the workload that presents the command: `sub` of its own token (SEC-14).
        expected: values that the grant must repeat, by Python name.
        now: seconds since 1970; the clock by default.

    Raises:
        InvalidToken: with the reason, never with the grant.
    """
    stated: Any = read_grant(token, keys, contract=contract)
    for name, value in {"sub": caller, **expected}.items():
        if not hmac.compare_digest(str(getattr(stated, name)).encode(), str(value).encode()):
            raise InvalidToken(f"The grant allows another {name}")
    moment = time.time() if now is None else now
    if not stated.iat - LEEWAY_SECONDS <= moment < stated.exp:
        raise InvalidToken("The grant is not valid at this time")
    return stated


def read_grant(token: str, keys: Iterable[Ed25519PublicKey], *, contract: type[G]) -> G:
    """The claims of an authentic grant, whatever the time; `InvalidToken` with the reason."""
    if len(token) > GRANT_LENGTH_MAX:
        raise InvalidToken("The grant is too long")
    known = {key_id(key): key for key in keys}
    try:
        key = known.get(str(jwt.get_unverified_header(token).get("kid")))
        if key is None:
            raise InvalidToken("The grant is signed with a key unknown here")
        claims = jwt.decode(token, key, algorithms=[ALGORITHM], options=_SIGNATURE_ONLY)
    except (jwt.PyJWTError, ValueError, TypeError):
        raise InvalidToken("The grant is malformed or its signature is wrong") from None
    try:
        return contract.decode(claims)
    except ContractError as error:
        raise InvalidToken(f"The grant breaks its contract at {error.pointer}") from None
