"""The workload key pair: made once, private to its owner, completed after an interruption, never replaced."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from seapost.cli.keys import ensure_pair
from seapost.model.errors import InvalidSetting
from seapost.transport.token import TokenSigner, TokenVerifier, load_private_key, load_public_key


def _verifies(private: Path, public: Path) -> bool:
    signer = TokenSigner(load_private_key(private.read_bytes()), issuer="seapost", workload="dispatcher")
    verifier = TokenVerifier([load_public_key(public.read_bytes())], issuer="seapost")
    token = signer.mint(audience="billing", scope="scope", purpose="purpose", bindings={})
    return verifier.verify(token).audience == "billing"


@pytest.mark.req("SEC-17")
def test_a_pair_is_made_once_and_belongs_together(tmp_path: Path) -> None:
    """Tokens of the private half verify with the public one; only its owner may read the private half."""
    private, public = tmp_path / "keys" / "private.pem", tmp_path / "keys" / "public.pem"
    assert ensure_pair(private, public) == [private, public]
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    before = private.read_bytes(), public.read_bytes()
    assert ensure_pair(private, public) == []
    assert (private.read_bytes(), public.read_bytes()) == before
    assert _verifies(private, public)


@pytest.mark.req("F85")
def test_an_interrupted_run_is_completed(tmp_path: Path) -> None:
    """A missing public half comes from the private one; one that lies alone is replaced."""
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    _ = ensure_pair(private, public)
    public.unlink()
    assert ensure_pair(private, public) == [public]
    assert _verifies(private, public)
    private.unlink()
    assert ensure_pair(private, public) == [private, public]
    assert _verifies(private, public)


def test_a_foreign_file_is_never_overwritten(tmp_path: Path) -> None:
    """What stands in the place of the key and is none is refused and left as it is."""
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    private.write_text("no key", encoding="utf-8")
    with pytest.raises(InvalidSetting, match="Ed25519"):
        _ = ensure_pair(private, public)
    assert private.read_text(encoding="utf-8") == "no key"
    assert not public.exists()
