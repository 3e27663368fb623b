"""Where the transport connects to: decided on the address of each connection, never on the text of a URL."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from seapost.model.errors import AddressRefused
from seapost.model.outcome import ErrorCode, Retryable
from seapost.transport.address import PUBLIC_ONLY, AddressPolicy
from seapost.transport.http import HttpLimits, HttpTransport
from tests.kit.consumer import claim
from tests.kit.eventually import eventually_async
from tests.kit.serving import always, peer, response

INTERNAL = [
    "127.0.0.1",
    "127.8.9.10",
    "0.0.0.0",  # noqa: S104 - an address that must be refused
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.168.1.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
    "fc00::1",
    "fd12::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
]


@pytest.mark.req("F86")
@pytest.mark.parametrize("address", INTERNAL)
def test_internal_addresses_are_refused_by_default(address: str) -> None:
    """Private, loopback, link-local, reserved and translated forms of such addresses are refused."""
    with pytest.raises(AddressRefused):
        PUBLIC_ONLY.check_address("receiver.example", address)


@pytest.mark.req("F86")
@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8"]
)
def test_public_addresses_are_allowed(address: str) -> None:
    """Addresses of the public Internet are allowed without any list."""
    PUBLIC_ONLY.check_address("receiver.example", address)


@pytest.mark.req("F86")
def test_operator_lists_hosts_and_networks() -> None:
    """A listed host may resolve to anything, a listed network may be reached under any name, and nothing else."""
    policy = AddressPolicy.allowing("billing.internal.", "10.2.0.0/16", "127.0.0.1")
    policy.check_address("Billing.Internal", "192.168.7.7")
    policy.check_address("any.example", "10.2.3.4")
    policy.check_address("any.example", "::ffff:10.2.3.4")
    policy.check_address("any.example", "127.0.0.1")
    for host, address in (("any.example", "10.3.0.1"), ("xbilling.internal", "10.3.0.1"), ("any.example", "127.0.0.2")):
        with pytest.raises(AddressRefused):
            policy.check_address(host, address)
    with pytest.raises(AddressRefused):
        policy.check_address("any.example", "nonsense")


@pytest.mark.req("F86")
@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://receiver.example/",
        "gopher://receiver.example/",
        "receiver.example",
        "//receiver.example/",
        "http://",
        "http:///path",
        "http://user:pw@receiver.example/",
        "http://user@receiver.example/",
        "http://receiver.example/#part",
        "http://receiver.example:0/",
        "http://receiver.example:99999/",
        "http://receiver.example:http/",
        "http://receiver.example\\@127.0.0.1/",
        "http://receiver.example/\r\nhost: x",
        "http://receiver.example /",
        "http://[::1",
        "http://\uff45xample.com/",
        "http://receiver.example/" + "a" * 3_000,
    ],
)
def test_urls_of_another_form_are_refused(url: str) -> None:
    """Only http and https URLs with a host are taken; never user, password, fragment, odd port or odd character."""
    with pytest.raises(AddressRefused) as caught:
        HttpTransport(url)
    assert "pw" not in str(caught.value)


@pytest.mark.req("F86")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "0"])
async def test_spellings_of_loopback_are_refused_at_the_connection(host: str) -> None:
    """However a URL spells an internal address, the call is refused before anything is sent."""
    async with peer(always(response(b"{}"))) as url:
        port = url.rpartition(":")[2]
        async with HttpTransport(f"http://{host}:{port}/") as transport:
            (outcome,) = await transport.deliver([claim()], timeout_seconds=10)
    assert isinstance(outcome, Retryable)
    assert (outcome.code, outcome.answered) == (ErrorCode.DEPENDENCY_UNAVAILABLE, True)


@pytest.mark.req("F86")
async def test_name_that_changes_its_mind_is_resolved_for_every_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to a public address first and to loopback next is refused the second time."""
    answers = iter(["8.8.8.8", "127.0.0.1"])

    def resolve(_host: str, port: int, **_options: object) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert list(await PUBLIC_ONLY.resolve("receiver.example", 443)) == ["8.8.8.8"]
    with pytest.raises(AddressRefused):
        await PUBLIC_ONLY.resolve("receiver.example", 443)


@pytest.mark.req("F86")
async def test_one_internal_answer_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with several addresses is refused when any one of them is internal."""

    def resolve(_host: str, port: int, **_options: object) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("8.8.8.8", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(AddressRefused):
        await PUBLIC_ONLY.resolve("receiver.example", 443)


@pytest.mark.req("F86")
async def test_checked_address_is_the_one_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes to the checked address, while the name stays in the Host field."""
    heads: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(response(b"{}"))
        await writer.drain()

    async with peer(script) as url:
        port = int(url.rpartition(":")[2])
        asked: list[str] = []
        resolve = socket.getaddrinfo

        def getaddrinfo(host: str, port: int, *arguments: int, **options: int) -> object:
            asked.append(host)
            return resolve("127.0.0.1" if host == "receiver.example" else host, port, *arguments, **options)

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        policy = AddressPolicy.allowing("127.0.0.1")
        async with HttpTransport(f"http://receiver.example:{port}/", policy=policy) as transport:
            await transport.deliver([claim()], timeout_seconds=10)
    assert asked.count("receiver.example") == 1
    assert f"host: receiver.example:{port}".encode() in heads[0].lower()


@pytest.mark.req("F86")
async def test_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of the environment gets to see a delivery."""
    visited: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        visited.append(await reader.read(1))

    async with peer(proxy) as elsewhere, peer(always(response(b"{}"))) as url:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, elsewhere)
        async with HttpTransport(url, policy=AddressPolicy.allowing("127.0.0.1")) as transport:
            await transport.deliver([claim()], timeout_seconds=10)
    assert visited == []


@pytest.mark.req("F23")
async def test_names_that_never_resolve_hold_up_no_other_destination(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the resolver hangs for fifty destinations, with two connections each, another one's name is resolved."""
    asked: list[str] = []
    released = threading.Event()
    resolve = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *arguments: int, **options: int) -> object:
        if host == "dead.example":
            asked.append(host)
            released.wait()
            raise OSError("no answer")
        return resolve("127.0.0.1", port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    policy = AddressPolicy.allowing("127.0.0.1")
    dead = [
        HttpTransport("http://dead.example/", policy=policy, limits=HttpLimits(connections_max=2)) for _ in range(50)
    ]
    async with peer(always(response(b"{}"))) as url:
        calls = [asyncio.ensure_future(one.deliver([claim()], timeout_seconds=60)) for one in dead for _ in range(2)]
        try:
            await eventually_async(lambda: len(asked) == len(calls), what="every dead name being asked for")
            port = url.rpartition(":")[2]
            async with HttpTransport(f"http://alive.example:{port}/", policy=policy) as alive:
                (outcome,) = await alive.deliver([claim()], timeout_seconds=30)
            assert isinstance(outcome, Retryable)
            assert outcome.code is ErrorCode.ACK_INVALID
            assert not any(call.done() for call in calls)
        finally:
            released.set()
        await asyncio.gather(*calls, *(one.aclose() for one in dead))
