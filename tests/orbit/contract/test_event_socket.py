"""The WebSocket below the session: close codes, pongs, limits, stops, and clients that do not read."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import pytest
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from orbit.server.ws.channel import Channel, Gone, Heard
from orbit.wire.frames import PROTOCOL
from tests.kit.eventually import eventually_async
from tests.kit.orbit.sockets import listening, raw_socket

PIECE: Final = "x" * 1_000_000


def agreed(url: str, **options: Any) -> connect:
    """Connect with the subprotocol that the server agrees to."""
    return connect(url, subprotocols=[Subprotocol(PROTOCOL)], proxy=None, **options)


class Application:
    """Accepts, echoes, and notes what it heard.

    Attributes:
        heard: what came instead of text.
        gone: whether a write failed because nobody took it.
    """

    def __init__(self, *, write_seconds: float = 5.0, floods: bool = False) -> None:
        self.heard: list[Heard] = []
        self.gone = False
        self.ended = asyncio.Event()
        self.scope: Scope = {}
        self._write_seconds = write_seconds
        self._floods = floods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        self.scope = scope
        channel = Channel(scope, receive, send, write_seconds=self._write_seconds)
        await channel.accept()
        try:
            while self._floods:
                await channel.send([PIECE])
            while isinstance(heard := await channel.receive(), str):
                await channel.send([heard])
            self.heard.append(heard)
            if heard.what == "stop":
                await channel.send(["bye"])
                await channel.close(1001, "stop")
        except Gone:
            self.gone = True
        finally:
            self.ended.set()


@pytest.mark.req("orbit:WSS-12")
async def test_a_client_that_sends_no_pong_is_closed_with_4408() -> None:
    """The server pings by itself; silence closes the connection, and the application hears of it."""
    app = Application()
    async with (
        listening(app, ping_interval=0.05, pong_timeout=0.05) as server,
        raw_socket(server.url + "/x") as client,
    ):
        assert (await client.read_frame())[0] == 9
        assert await client.close_code() == 4408
        await app.ended.wait()
        assert app.heard == [Heard("left")]


@pytest.mark.req("orbit:WSS-12")
async def test_a_client_that_answers_pings_stays() -> None:
    """Several pings pass, and the connection still works."""
    app = Application()
    async with (
        listening(app, ping_interval=0.02, pong_timeout=5) as server,
        raw_socket(server.url + "/x") as client,
    ):
        for _ in range(3):
            opcode, payload = await client.read_frame()
            assert opcode == 9
            await client.send_frame(10, payload)
        await client.send_frame(1, b"hello")
        while (await client.read_frame()) != (1, b"hello"):
            pass


@pytest.mark.req("orbit:WSS-04", "orbit:T-N22", "F52")
async def test_a_frame_too_large_is_refused_by_its_length_and_the_client_learns_why() -> None:
    """The close frame is there before the reset that unread bytes would bring, while the client still sends."""
    app = Application()
    async with listening(app) as server, raw_socket(server.url + "/x") as client:
        await client.send_frame(1, b"x" * 60_000_000)
        assert await client.close_code() == 1009
        await client.ended()
    assert app.heard == [Heard("left")]


@pytest.mark.req("orbit:WSS-04")
@pytest.mark.parametrize(
    ("opcode", "payload", "code"), [(1, b"\xff\xfe", 1007), (3, b"", 1002)], ids=["utf-8", "opcode"]
)
async def test_broken_frames_close_with_the_code_of_the_protocol(opcode: int, payload: bytes, code: int) -> None:
    """Text that is no UTF-8, and an operation that does not exist."""
    async with listening(Application()) as server, raw_socket(server.url + "/x") as client:
        await client.send_frame(opcode, payload)
        assert await client.close_code() == code
        await client.ended()


@pytest.mark.req("orbit:WSS-14", "F54")
async def test_a_stop_reaches_the_application_which_says_goodbye() -> None:
    """The client gets the last frame and 1001, not the bare 1012 of a server that just goes."""
    app = Application()
    async with listening(app) as server, agreed(server.url + "/x") as client:
        await client.send("hello")
        assert await client.recv() == "hello"
        server.server.should_exit = True
        assert await client.recv() == "bye"
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == 1001
    assert app.heard == [Heard("stop")]


@pytest.mark.req("orbit:WSS-16", "F53")
async def test_a_client_that_never_reads_is_cut_and_forgotten() -> None:
    """The write runs into its time limit; the connection is gone although its buffer never drained."""
    app = Application(write_seconds=0.1, floods=True)
    async with listening(app) as server, raw_socket(server.url + "/x", receive_buffer=4096):
        await app.ended.wait()
        assert app.gone
        await eventually_async(lambda: server.connections == 0, what="the end of the connection")


@pytest.mark.req("F52")
async def test_a_client_that_vanishes_while_nothing_is_sent_is_noticed() -> None:
    """A reset reaches an application that only waits."""
    app = Application()
    async with listening(app) as server, raw_socket(server.url + "/x") as client:
        client.abort()
        await app.ended.wait()
        assert app.heard == [Heard("left")]
        await eventually_async(lambda: server.connections == 0, what="the end of the connection")


@pytest.mark.req("F87", "orbit:AUT-14", "orbit:T-P09")
async def test_neither_the_query_string_nor_a_frame_reaches_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Also at the most talkative level; the application does not see the query string either."""
    caplog.set_level(logging.NOTSET)
    for name in ("uvicorn.error", "uvicorn.access"):
        caplog.set_level(logging.DEBUG, logger=name)
    app = Application()
    async with (
        listening(app) as server,
        agreed(server.url + "/x?token=s3cr3t", logger=_silent()) as client,
    ):
        await client.send("fr4me")
        await client.recv()
    assert app.scope["query_string"] == b""
    assert "s3cr3t" not in caplog.text
    assert "fr4me" not in caplog.text


def _silent() -> Any:  # noqa: ANN401 - what `logging` gives
    quiet = logging.getLogger("silent")
    quiet.disabled = True
    return quiet


async def test_texts_that_belong_together_arrive_as_frames_of_their_own() -> None:
    """One write, several frames, in order, also where the server knows no batches."""
    texts = [f"{number}" * 100 for number in range(50)]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/plain":
            del scope["extensions"]["orbit.batch"]
        channel = Channel(scope, receive, send, write_seconds=5)
        await channel.accept()
        await channel.send(iter(texts))
        await channel.receive()

    async with listening(app) as server:
        for path in ("/batch", "/plain"):
            async with agreed(server.url + path) as client:
                assert [await client.recv() for _ in texts] == texts
