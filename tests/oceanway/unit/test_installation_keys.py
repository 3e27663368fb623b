"""Keys of an installation: one pair for each workload, believed for that workload alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oceanway.installation.keys import CALLERS, WorkloadVerifier, ensure_keys, load_signer, load_verifier
from oceanway.installation.layout import DATABASE_OF, DESTINATIONS, DISPATCHED, PROCESSES, SERVED, WORKS, Kind
from seapost.model.errors import InvalidSetting, InvalidToken
from seapost.transport.token import TokenSigner

ISSUER = "oceanway"


def token_of(signer: TokenSigner) -> str:
    """Any token of this signer."""
    return signer.mint(audience="gateway", scope="oceanway.read", purpose="p", bindings={"/a": 1})


@pytest.mark.req("REF-11")
def test_a_workload_cannot_speak_as_another_one() -> None:
    """Both keys are known; a token signed with one of them for the other's workload is refused."""
    mine, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    verifier = WorkloadVerifier(
        {"serve.billing": mine.public_key(), "work.metering": other.public_key()}, issuer=ISSUER
    )
    honest = TokenSigner(mine, issuer=ISSUER, workload="serve.billing")
    assert verifier.verify(token_of(honest)).workload == "serve.billing"
    for malformed in ("", "a.b.c", "W10.W10.W10", "!!.!!.!!", token_of(honest)[:-4]):
        with pytest.raises(InvalidToken):
            _ = verifier.verify(malformed)
    for workload in ("work.metering", "serve.gateway"):
        liar = TokenSigner(mine, issuer=ISSUER, workload=workload)
        with pytest.raises(InvalidToken):
            _ = verifier.verify(token_of(liar))


def test_keys_are_made_once_and_only_their_user_may_read_the_private_half(tmp_path: Path) -> None:
    """Every caller has a pair; a second run makes nothing; every owner believes what a process signs."""
    assert ensure_keys(tmp_path) == list(CALLERS)
    assert ensure_keys(tmp_path) == []
    for workload in CALLERS:
        assert stat.S_IMODE((tmp_path / "keys" / f"{workload}.pem").stat().st_mode) == 0o600
    verifier = load_verifier(tmp_path, issuer=ISSUER)
    for workload in CALLERS:
        assert verifier.verify(token_of(load_signer(tmp_path, workload, issuer=ISSUER))).workload == workload


@pytest.mark.req("SEC-01", "REF-11")
def test_only_dispatchers_may_deliver(tmp_path: Path) -> None:
    """What a receiver of deliveries believes: the dispatchers' keys and no other ones."""
    _ = ensure_keys(tmp_path)
    verifier = load_verifier(tmp_path, issuer=ISSUER, kinds=frozenset({Kind.DISPATCH}))
    assert verifier.verify(token_of(load_signer(tmp_path, "dispatch.core", issuer=ISSUER)))
    with pytest.raises(InvalidToken):
        _ = verifier.verify(token_of(load_signer(tmp_path, "work.metering", issuer=ISSUER)))


def test_a_missing_key_is_a_mistake_of_the_settings(tmp_path: Path) -> None:
    """The refusal names the file and not the folder's secrets."""
    with pytest.raises(InvalidSetting, match=r"work\.metering\.pem"):
        _ = load_signer(tmp_path, "work.metering", issuer=ISSUER)


def test_the_layout_is_closed_and_consistent() -> None:
    """Each destination has a receiving owner with a port, each loop an owner, each process one name and one login."""
    assert set(DESTINATIONS.values()) <= set(SERVED)
    assert {name for names in DISPATCHED.values() for name in names} == set(DESTINATIONS)
    assert {*SERVED, *WORKS.values()} <= set(DATABASE_OF)
    assert len({one.workload for one in PROCESSES}) == len({one.login for one in PROCESSES}) == len(PROCESSES)
    assert "core" not in SERVED
