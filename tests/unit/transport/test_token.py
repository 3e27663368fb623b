"""Workload tokens: what is accepted, what is refused and with which words."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seapost.model.errors import InvalidSetting, InvalidToken
from seapost.transport.token import (
    DELIVER_PURPOSE,
    DELIVER_SCOPE,
    TokenSigner,
    TokenVerifier,
    delivery_bindings,
    key_id,
    load_private_key,
    load_public_key,
)

KEY = Ed25519PrivateKey.generate()
SIGNER = TokenSigner(KEY, issuer="house", workload="dispatcher-1")
VERIFIER = TokenVerifier([KEY.public_key()], issuer="house")
BINDINGS = delivery_bindings(destination="billing", consumer_name="billing", delivery_count=3, body=b"{}")


def mint(**changes: Any) -> str:
    """A token for a delivery call, with the named arguments changed."""
    arguments: dict[str, Any] = {
        "audience": "billing",
        "scope": DELIVER_SCOPE,
        "purpose": DELIVER_PURPOSE,
        "bindings": BINDINGS,
    }
    return SIGNER.mint(**(arguments | changes))


def forge(
    headers: dict[str, Any] | None = None,
    algorithm: str = "EdDSA",
    key: Ed25519PrivateKey | str = KEY,
    **changes: Any,
) -> str:
    """A token with the claims of a right one, except for those changed; a claim set to None is left out.

    Changed times are seconds from now, because a test may run long after it was collected.
    """
    now = int(time.time())
    for claim in ("iat", "exp"):
        if changes.get(claim) is not None:
            changes[claim] += now
    claims = {
        "iss": "house",
        "sub": "dispatcher-1",
        "aud": "billing",
        "scope": DELIVER_SCOPE,
        "purpose": DELIVER_PURPOSE,
        "iat": now,
        "exp": now + 30,
        "jti": "one",
        "bindings": dict(BINDINGS),
        **changes,
    }
    present = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(present, key, algorithm=algorithm, headers=headers or {"kid": key_id(KEY.public_key())})


@pytest.mark.req("REF-11")
def test_right_token_says_who_calls_for_what() -> None:
    """A fresh token gives its workload and passes for exactly the call it was minted for."""
    claims = VERIFIER.verify(mint())
    claims.require(audience="billing", scope=DELIVER_SCOPE, purpose=DELIVER_PURPOSE, bindings=BINDINGS)
    assert claims.workload == "dispatcher-1"
    assert VERIFIER.verify(mint()).token_id != claims.token_id


@pytest.mark.req("REF-11", "NEG-11")
@pytest.mark.parametrize(
    ("name", "value"),
    [("destination", "search"), ("consumerName", "search"), ("deliveryCount", 4), ("requestSha256", "0" * 64)],
)
def test_each_binding_is_compared(name: str, value: str | int) -> None:
    """A call that differs in any one bound argument is refused, and the reason names the argument."""
    claims = VERIFIER.verify(mint())
    with pytest.raises(InvalidToken, match=name):
        claims.require(
            audience="billing", scope=DELIVER_SCOPE, purpose=DELIVER_PURPOSE, bindings={**BINDINGS, name: value}
        )


@pytest.mark.req("REF-11", "NEG-11")
def test_bindings_are_complete_in_both_directions() -> None:
    """A token that binds less or more than the call's arguments is refused."""
    for bindings in ({}, {**BINDINGS, "more": 1}):
        claims = VERIFIER.verify(mint(bindings=bindings))
        with pytest.raises(InvalidToken, match="exactly"):
            claims.require(audience="billing", scope=DELIVER_SCOPE, purpose=DELIVER_PURPOSE, bindings=BINDINGS)


@pytest.mark.req("REF-11", "NEG-11")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": -20, "iat": -50}, "expired"),
        ({"iat": 100, "exp": 130}, "not valid yet"),
        ({"exp": 3_600}, "longer than 60"),
        ({"exp": 30.5}, "whole seconds"),
        ({"iss": "elsewhere"}, "issuer"),
        ({"aud": ["billing", "search"]}, "aud"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "sub"),
        ({"scope": None}, "scope"),
        ({"purpose": None}, "purpose"),
        ({"jti": None}, "jti"),
        ({"exp": None}, "exp"),
        ({"bindings": None}, "bindings"),
        ({"bindings": []}, "bindings"),
        ({"bindings": {"deliveryCount": 3.0}}, "strings and integers"),
        ({"bindings": {"deliveryCount": True}}, "strings and integers"),
        ({"headers": {"kid": "unknown"}}, "key unknown"),
        ({"headers": {"cty": "none"}}, "key unknown"),
        ({"key": Ed25519PrivateKey.generate()}, "signature"),
        ({"algorithm": "none", "key": ""}, "malformed"),
        ({"algorithm": "HS256", "key": "x" * 40}, "malformed"),
    ],
)
def test_forged_token_is_refused_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    """A token that is late, early, long-lived, foreign, incomplete or signed otherwise is refused."""
    text = forge(**changes)
    with pytest.raises(InvalidToken, match=reason) as caught:
        VERIFIER.verify(text)
    assert text not in str(caught.value)
    assert text.split(".")[1] not in str(caught.value)


@pytest.mark.req("REF-11")
@pytest.mark.parametrize("text", ["", ".", "a.b.c", "é", "x" * 5_000, "e30.e30.", "\x00"])
def test_text_that_is_no_token_is_malformed(text: str) -> None:
    """Whatever text arrives, the verifier answers with InvalidToken and nothing else."""
    with pytest.raises(InvalidToken):
        VERIFIER.verify(text)


@pytest.mark.req("REF-11")
def test_leeway_is_small() -> None:
    """A clock that differs by two seconds is forgiven, one that differs by ten is not."""
    now = time.time()
    assert VERIFIER.verify(mint(now=now - 62)).audience == "billing"
    with pytest.raises(InvalidToken, match="expired"):
        VERIFIER.verify(mint(now=now - 70))
    with pytest.raises(InvalidSetting):
        mint(lifetime_seconds=61)


@pytest.mark.req("REF-11")
def test_callers_can_be_listed() -> None:
    """A verifier with a list of workloads takes only those."""
    listed = TokenVerifier([KEY.public_key()], issuer="house", workloads=["dispatcher-2"])
    with pytest.raises(InvalidToken, match="may not call"):
        listed.verify(mint())


def test_two_keys_serve_while_one_is_rotated() -> None:
    """While a key is rotated, tokens of the old and of the new one are both accepted."""
    new = Ed25519PrivateKey.generate()
    both = TokenVerifier([KEY.public_key(), new.public_key()], issuer="house")
    other = TokenSigner(new, issuer="house", workload="dispatcher-1")
    assert both.verify(mint()).issuer == "house"
    assert both.verify(other.mint(audience="a", scope="b", purpose="c", bindings={})).audience == "a"
    with pytest.raises(InvalidSetting):
        TokenVerifier([], issuer="house")


@pytest.mark.req("SEC-17")
def test_signer_shows_no_secret() -> None:
    """The representation of a signer names issuer and workload only."""
    assert repr(SIGNER) == "TokenSigner(issuer='house', workload='dispatcher-1')"


def test_keys_are_read_from_pem() -> None:
    """Ed25519 keys come from PEM files; anything else is refused without being quoted."""
    private = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert key_id(load_private_key(private).public_key()) == key_id(load_public_key(public))
    other = generate_private_key(SECP256R1())
    foreign = other.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for pem in (b"", b"secret words", foreign):
        with pytest.raises(InvalidSetting) as caught:
            load_private_key(pem)
        assert "secret words" not in str(caught.value)
    with pytest.raises(InvalidSetting):
        load_public_key(private)
