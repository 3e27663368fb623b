"""TLS is checked against the name in the URL, whatever address the connection goes to."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from seapost.model.outcome import ErrorCode, Outcome, Retryable
from seapost.transport.address import AddressPolicy
from seapost.transport.http import HttpTransport
from tests.kit.consumer import claim
from tests.kit.serving import always, response

NAME = "receiver.example"

Certify = Callable[[str, timedelta], Path]


@pytest.fixture
def certify(tmp_path: Path) -> Certify:
    """Make a self-signed certificate with its key, valid for a name from yesterday until some time from now."""

    def make(name: str, validity: timedelta) -> Path:
        key = generate_private_key(SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + validity)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, SHA256())
        )
        path = tmp_path / f"{name}.pem"
        pem = serialization.Encoding.PEM
        path.write_bytes(
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            + certificate.public_bytes(pem)
        )
        return path

    return make


async def deliver(monkeypatch: pytest.MonkeyPatch, certificate: Path, *, trusted: bool) -> Outcome:
    """Deliver one claim to a TLS peer on loopback that the URL calls by its name."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certificate)
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, ssl=server_context)
    port = server.sockets[0].getsockname()[1]
    resolve = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *arguments: int, **options: int) -> object:
        return resolve("127.0.0.1" if host == NAME else host, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    context = ssl.create_default_context(cafile=str(certificate) if trusted else None)
    policy = AddressPolicy.allowing("127.0.0.1")
    try:
        async with HttpTransport(f"https://{NAME}:{port}/", policy=policy, ssl_context=context) as transport:
            (outcome,) = await transport.deliver([claim()], timeout_seconds=10)
    finally:
        server.close()
    return outcome


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await always(response(b"{}"))(reader, writer)
    finally:
        writer.close()


@pytest.mark.req("F86")
async def test_certificate_of_the_name_is_accepted(monkeypatch: pytest.MonkeyPatch, certify: Certify) -> None:
    """A trusted certificate of the URL's name lets the call through: its garbage answer is read and refused."""
    outcome = await deliver(monkeypatch, certify(NAME, timedelta(days=1)), trusted=True)
    assert isinstance(outcome, Retryable)
    assert outcome.code is ErrorCode.ACK_INVALID


@pytest.mark.req("F28")
@pytest.mark.parametrize(
    ("name", "validity", "trusted"),
    [
        pytest.param(NAME, timedelta(hours=-1), True, id="expired"),
        pytest.param("other.example", timedelta(days=1), True, id="another name"),
        pytest.param(NAME, timedelta(days=1), False, id="an unknown issuer"),
    ],
)
async def test_wrong_certificate_ends_the_call_before_it_is_sent(
    monkeypatch: pytest.MonkeyPatch, certify: Certify, name: str, validity: timedelta, trusted: bool
) -> None:
    """An expired, foreign or untrusted certificate is retryable and makes no suspects: nothing was sent."""
    outcome = await deliver(monkeypatch, certify(name, validity), trusted=trusted)
    assert isinstance(outcome, Retryable)
    assert (outcome.code, outcome.answered) == (ErrorCode.DEPENDENCY_UNAVAILABLE, True)
