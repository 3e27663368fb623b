"""A signing key for each workload, and the verifier that knows whose key is whose.

The private halves are given to their processes, the public ones to every owner. A token is believed only when it is
signed with the key of the very workload that it names, so that no process can speak as another one (REF-11).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from jwt.utils import base64url_decode

from oceanway.installation.layout import PROCESSES, Kind
from seapost.cli.keys import ensure_pair
from seapost.model.errors import InvalidSetting, InvalidToken
from seapost.transport.token import TokenClaims, TokenSigner, TokenVerifier, key_id, load_private_key, load_public_key

PRIVATE: Final = "keys"
PUBLIC: Final = "public"
CALLERS: Final = tuple(process.workload for process in PROCESSES if process.kind is not Kind.AUDIT)
"""Every workload that calls another one."""


class WorkloadVerifier(TokenVerifier):
    """Believes the keys of several workloads, each for its own workload alone.

    Args:
        keys: the public key of each workload.
    """

    def __init__(self, keys: Mapping[str, Ed25519PublicKey], *, issuer: str) -> None:
        super().__init__(keys.values(), issuer=issuer, workloads=keys)
        self._workloads_of_keys = {key_id(key): workload for workload, key in keys.items()}

    def verify(self, token: str) -> TokenClaims:
        """The claims of an authentic token; see `TokenVerifier.verify`."""
        claims = super().verify(token)
        if claims.workload != self._workloads_of_keys[_key_id_in(token)]:
            raise InvalidToken("The workload token is signed with the key of another workload")
        return claims

    def _key_of(self, token: str) -> Ed25519PublicKey:
        """The key that the token's header names; only the header is read, because a read's token is long."""
        key = self._keys.get(_key_id_in(token))
        if key is None:
            raise InvalidToken("The workload token is signed with a key unknown here")
        return key


def _key_id_in(token: str) -> str:
    head, _, _ = token.partition(".")
    try:
        header: object = json.loads(base64url_decode(head))
    except (ValueError, RecursionError):
        raise InvalidToken("The workload token is malformed") from None
    return str(cast("dict[str, object]", header).get("kid")) if isinstance(header, dict) else ""


def ensure_keys(folder: Path) -> list[str]:
    """Make the key pairs that are missing; the names of the workloads that got one."""
    (folder / PUBLIC).mkdir(mode=0o755, parents=True, exist_ok=True)
    return [
        workload
        for workload in CALLERS
        if ensure_pair(folder / PRIVATE / f"{workload}.pem", folder / PUBLIC / f"{workload}.pem")
    ]


def load_signer(folder: Path, workload: str, *, issuer: str) -> TokenSigner:
    """The identity of one workload; raise InvalidSetting when its key is missing or malformed."""
    return TokenSigner(load_private_key(_read(folder / PRIVATE / f"{workload}.pem")), issuer=issuer, workload=workload)


def load_verifier(folder: Path, *, issuer: str, kinds: frozenset[Kind] = frozenset(Kind)) -> WorkloadVerifier:
    """What an owner believes: the public keys of the workloads of these kinds."""
    keys = {
        process.workload: load_public_key(_read(folder / PUBLIC / f"{process.workload}.pem"))
        for process in PROCESSES
        if process.workload in CALLERS and process.kind in kinds
    }
    return WorkloadVerifier(keys, issuer=issuer)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = f"trust.folder: {path.name} cannot be read: {error.strerror}; `oceanway init` makes the keys."
        raise InvalidSetting(reason) from None
