"""Owner reads over HTTP: the same answers as without a network, and one error for everything that is no answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Event

import httpx
import pytest

from oceanway.reads.call import PATH, encode_request
from oceanway.reads.endpoint import ReadsEndpoint
from oceanway.reads.errors import OwnerUnreadable, ReadRefused
from oceanway.reads.http import HttpReader, ReadLimits
from seapost.model.errors import InvalidSetting
from tests.kit.oceanway.port import listening_at
from tests.kit.oceanway.questions import (
    CALLER,
    OWNER,
    READ_SHIP,
    Harbour,
    ShipAnswer,
    ShipQuestion,
    answer_of,
    question,
)
from tests.kit.oceanway.reading import new_signer
from tests.kit.serving import peer

QUICK = ReadLimits(seconds_max=0.3)


@dataclass
class Port:
    """A harbour on a port, and a reader of it."""

    harbour: Harbour
    url: str
    reader: HttpReader

    async def ask(self, *asked: ShipQuestion) -> list[ShipAnswer]:
        """Ask from a thread, as every caller does."""
        return await asyncio.to_thread(self.reader.call, READ_SHIP, asked)


@asynccontextmanager
async def port(limits: ReadLimits | None = None, *, threads: int = 2, waiting_max: int = 16) -> AsyncGenerator[Port]:
    """Serve a harbour."""
    harbour = Harbour()
    endpoint = ReadsEndpoint(harbour.serving, threads=threads, waiting_max=waiting_max)
    async with listening_at(endpoint) as url:
        with HttpReader({OWNER: url}, signer=new_signer(CALLER), limits=limits) as reader:
            yield Port(harbour, url, reader)
    endpoint.close()


async def unreadable(url: str, limits: ReadLimits | None = None) -> OwnerUnreadable:
    """How a read at this address fails."""
    with (
        HttpReader({OWNER: url}, signer=new_signer(CALLER), limits=limits) as reader,
        pytest.raises(OwnerUnreadable) as error,
    ):
        _ = await asyncio.to_thread(reader.call, READ_SHIP, [question()])
    return error.value


@pytest.mark.req("REF-11", "GEN-14")
async def test_answers_come_back_in_order_over_one_connection() -> None:
    """Two calls, of which one is cut into parts of two items: five answers, each at its place."""
    async with port(ReadLimits(items_max=2)) as one:
        asked = [question(ship_ref=name) for name in ("A", "Ghost", "C", "D", "E")]
        assert await one.ask(*asked) == [answer_of(each) for each in asked]
        assert [len(seen) for _, seen in one.harbour.asked] == [2, 2, 1]
        assert {caller.workload for caller, _ in one.harbour.asked} == {CALLER}


@pytest.mark.req("SEC-08", "NEG-11")
async def test_there_is_nothing_beside_the_registered_reads() -> None:
    """No list, no latest and no administrative route answers, and a read is a POST and nothing else."""
    async with port() as one, httpx.AsyncClient(base_url=one.url) as client:
        for path in (PATH, f"{PATH}/", f"{PATH}/listShips", f"{PATH}/readShip/latest", "/admin", "/", "/docs"):
            for method in ("GET", "POST", "DELETE"):
                headers = {"content-type": "application/json"}
                response = await client.request(method, path, headers=headers, content=b"{}")
                assert response.status_code == 404, path
        for method in ("GET", "PUT", "DELETE", "HEAD", "OPTIONS"):
            response = await client.request(method, f"{PATH}/readShip")
            assert response.status_code == 405
            assert response.headers["allow"] == "POST"
        assert one.harbour.asked == []


@pytest.mark.req("SEC-08", "NEG-11")
async def test_a_refusal_names_the_rule_and_never_the_token() -> None:
    """A token for another ship: 403 with a problem document, and an error of its own at the caller."""
    async with port() as one, httpx.AsyncClient(base_url=one.url) as client:
        document = json.loads(encode_request(READ_SHIP, [question()], new_signer(CALLER)))
        token = document["items"][0]["token"]
        document["items"][0]["arguments"] = question(state_version=8).canonical().decode()
        response = await client.post(f"{PATH}/readShip", json=document)
        assert response.status_code == 403
        assert response.json()["detail"] == "The workload token is bound to another /stateVersion"
        assert token not in response.text
        stranger = HttpReader({OWNER: one.url}, signer=new_signer("serve.billing"))
        with stranger, pytest.raises(ReadRefused, match="not one of this read's callers"):
            _ = await asyncio.to_thread(stranger.call, READ_SHIP, [question()])


@pytest.mark.parametrize(("body", "kind", "status"), [(b"{", "application/json", 400), (b"{}", "text/plain", 415)])
async def test_a_body_that_is_no_call_is_a_problem(body: bytes, kind: str, status: int) -> None:
    """Neither an unreadable body nor another type reaches the owner."""
    async with port() as one, httpx.AsyncClient(base_url=one.url) as client:
        response = await client.post(f"{PATH}/readShip", content=body, headers={"content-type": kind})
        assert response.status_code == status
        assert one.harbour.asked == []


@pytest.mark.req("AMB-35")
async def test_a_failing_owner_is_unreadable_and_shows_nothing_of_its_failure() -> None:
    """The owner's function raises: 500 with a reference."""
    async with port() as one:
        one.harbour.failure = RuntimeError("password=hunter2")
        with pytest.raises(OwnerUnreadable) as unreadable:
            _ = await one.ask(question())
        assert not isinstance(unreadable.value, ReadRefused)
        assert "hunter2" not in str(unreadable.value)
        assert unreadable.value.code == "owner_unreadable"


@pytest.mark.req("AMB-35")
async def test_an_owner_that_is_not_there_is_unreadable() -> None:
    """Nobody listens."""
    async with port() as one:
        gone = one.url
    assert not isinstance(await unreadable(gone), ReadRefused)


@pytest.mark.req("AMB-35")
async def test_an_owner_that_never_answers_is_unreadable_in_time() -> None:
    """A peer that takes the call and says nothing."""
    released = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        _ = await reader.read(10)
        _ = await released.wait()

    async with peer(silent) as url:
        assert not isinstance(await unreadable(url, QUICK), ReadRefused)
        released.set()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\nContent-Length: 43\r\n\r\n{"protocol":"oceanway.read.v1","answers":[]}',
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
        b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
    ids=["no response", "too few answers", "cut off", "redirect", "busy", "no HTTP"],
)
async def test_only_a_complete_response_in_its_form_is_answers(answer: bytes) -> None:
    """Everything else makes the owner unreadable."""

    async def scripted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _ = await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    async with peer(scripted) as url:
        assert not isinstance(await unreadable(url, QUICK), ReadRefused)


async def test_a_response_beyond_its_bound_is_not_read_to_its_end() -> None:
    """An endless response costs a bounded amount of memory."""
    limits = ReadLimits(seconds_max=5, response_bytes_max=10_000)

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _ = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        while True:
            writer.write(b"x" * 4096)
            await writer.drain()

    async with peer(endless) as url:
        assert "too large" in str(await unreadable(url, limits))


async def test_calls_beyond_the_bound_are_refused_and_not_queued() -> None:
    """One thread, none waiting: the second call at a time is told to come back, and is no refusal of the call."""
    inside, go_on = Event(), Event()
    async with port(threads=1, waiting_max=0) as one:

        def hold() -> None:
            inside.set()
            assert go_on.wait(10)

        one.harbour.before = hold
        first = asyncio.create_task(one.ask(question()))
        assert await asyncio.to_thread(inside.wait, 10)
        with pytest.raises(OwnerUnreadable) as busy:
            _ = await one.ask(question())
        assert not isinstance(busy.value, ReadRefused)
        go_on.set()
        assert await first == [answer_of(question())]


def test_an_owner_without_an_address_is_a_mistake_of_the_settings() -> None:
    """Nothing is guessed."""
    with HttpReader({}, signer=new_signer(CALLER)) as reader, pytest.raises(InvalidSetting, match=OWNER):
        _ = reader.call(READ_SHIP, [question()])


@pytest.mark.parametrize("wrong", [{"items_max": 0}, {"items_max": 501}, {"seconds_max": 0.0}, {"connections_max": 0}])
def test_limits_that_let_nothing_through_are_refused(wrong: dict[str, float]) -> None:
    """Settings name their rule."""
    with pytest.raises(InvalidSetting):
        _ = ReadLimits(**wrong)  # pyright: ignore[reportArgumentType]
