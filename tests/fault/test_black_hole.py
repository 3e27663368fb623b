"""The wire of the fault tests can swallow packets: nothing is confirmed, nothing refused, and it can be undone."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

import pytest

from tests.kit.proxy import Proxy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="packets can be swallowed on Linux only")

TCP_USER_TIMEOUT = 18
"""`socket.TCP_USER_TIMEOUT`, which not every platform names."""


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """Give a server that accepts."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def wire(listening: socket.socket) -> Iterator[Proxy]:
    """Give a wire before it."""
    with Proxy(listening.getsockname()) as proxy:
        yield proxy


def _call(wire: Proxy, listening: socket.socket) -> tuple[socket.socket, socket.socket]:
    near = socket.create_connection(("127.0.0.1", wire.port), timeout=20.0)
    far, _ = listening.accept()
    far.settimeout(20.0)
    near.sendall(b"?")
    assert far.recv(1) == b"?"  # so the wire knows the connection
    return near, far


def test_an_unconfirmed_packet_is_noticed_by_the_sender(wire: Proxy, listening: socket.socket) -> None:
    """A wire that only held would confirm it; this one lets the sender's own limit end the connection."""
    near, far = _call(wire, listening)
    near.setsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT, 200)
    wire.vanish()
    with near, far:
        near.sendall(b"lost")
        with pytest.raises(TimeoutError, match="timed out") as caught:
            near.recv(1)
        assert caught.value.errno is not None  # the kernel's word, not that of our own limit


def test_what_was_swallowed_arrives_when_the_network_is_back(wire: Proxy, listening: socket.socket) -> None:
    """The sender's machine sends it again."""
    near, far = _call(wire, listening)
    with near, far:
        wire.vanish()
        near.sendall(b"late")
        wire.heal()
        assert far.recv(4) == b"late"


def test_old_connections_can_stay_dead(wire: Proxy, listening: socket.socket) -> None:
    """A new connection passes while the old one is silent for ever."""
    near, far = _call(wire, listening)
    with near, far:
        wire.vanish()
        near.sendall(b"lost")
        wire.forget()
        new_near, new_far = _call(wire, listening)
        with new_near, new_far:
            new_near.sendall(b"here")
            assert new_far.recv(4) == b"here"
        far.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            far.recv(4)
