"""Round trips are counted by the protocol's own words, however they are cut into packets."""

from __future__ import annotations

import struct

import pytest

from benchmarks.relay import Trips


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


START = struct.pack("!ii", 8, 196608)
EXTENDED = _message(b"P", b"\0select 1\0\0\0") + _message(b"B", b"x" * 40) + _message(b"E", b"\0" * 5)


def test_only_messages_that_wait_are_counted() -> None:
    """The start of a session is no round trip; a Sync and a simple Query are one each."""
    trips = Trips()
    trips.feed(START + EXTENDED + _message(b"S") + _message(b"Q", b"begin\0") + _message(b"X"))
    assert trips.count == 2


def test_statements_of_one_pipeline_share_a_round_trip() -> None:
    """Several statements before one Sync wait once."""
    trips = Trips()
    trips.feed(START + EXTENDED * 3 + _message(b"S"))
    assert trips.count == 1


@pytest.mark.parametrize("size", [1, 3, 7, 64])
def test_packets_may_be_cut_anywhere(size: int) -> None:
    """The count is the same for every cut, also inside a header, and for bodies that hold the letters S and Q."""
    stream = START + (EXTENDED + _message(b"d", b"SQSQ" * 20) + _message(b"S")) * 5
    trips = Trips()
    for place in range(0, len(stream), size):
        trips.feed(stream[place : place + size])
    assert trips.count == 5
