"""What the scripts for the automatic consumer have in common: addresses, handlers, and a server's part of a pull."""

from __future__ import annotations

from typing import Any

from orbit.sdk import ReceivedEvent
from orbit.sdk.waiting import Backoff
from tests.kit.orbit.scripted_server import (
    Frame,
    Peer,
    ScriptedServer,
    acked,
    delivery,
    pull_done,
)
from tests.kit.orbit.sdk_flavours import Handler

SECRETS = ("A" * 43, "B" * 43)


def base_url(server: ScriptedServer) -> str:
    """The address that the SDK takes."""
    return server.url.replace("ws", "http", 1).removesuffix("/v1/events/connect")


def hasty(consumer: Any) -> None:  # noqa: ANN401 - either of two classes
    """Let a consumer reconnect at once."""
    consumer._core.backoff = Backoff(first=0.01, most=0.02)


def collecting(into: list[ReceivedEvent]) -> Handler:
    """A handler that only notes what it got."""

    async def handler(event: ReceivedEvent) -> None:
        into.append(event)

    return handler


async def refuses_the_first_event(event: ReceivedEvent) -> None:
    """A handler that cannot store the event with sequence 1."""
    if event.sequence == 1:
        raise OSError("the disk is full")


async def give(peer: Peer, *sequences: int, **members: Any) -> Frame:
    """Answer the next pull with these deliveries."""
    pull = await peer.expect("pull")
    await peer.send(*(delivery(pull, sequence, **members) for sequence in sequences), pull_done(pull, len(sequences)))
    return pull


async def serve_acks(peer: Peer) -> None:
    """Answer ACKs until the client leaves; pulls stay open."""
    while True:
        frame = await peer.receive()
        if frame["type"] == "ack":
            await peer.send(acked(frame))
