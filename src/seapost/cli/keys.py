"""The workload key pair: the private half signs the dispatcher's tokens, the public half is given to consumers."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from seapost.transport.token import load_private_key


def ensure_pair(private: Path, public: Path) -> list[Path]:
    """Make what is missing of the pair; returns the files written.

    An interrupted run is completed: a missing public half comes from the private one. A public half that lies alone
    belongs to a lost private one and is replaced.

    Raises:
        InvalidSetting: the private key that is there cannot be read.
    """
    written: list[Path] = []
    if private.exists():
        key = load_private_key(private.read_bytes())
    else:
        private.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            _write_new(private.parent / ".gitignore", b"# Keys and data of one machine.\n*\n", 0o644)
        key = Ed25519PrivateKey.generate()
        _write_new(private, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
        public.unlink(missing_ok=True)
        written.append(private)
    if not public.exists():
        _write_new(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)
        written.append(public)
    return written


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that did not exist, with its mode from its first moment on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        _ = file.write(content)
