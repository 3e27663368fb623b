"""A running dispatcher over a real database, with consumers whose answers a test scripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from seapost.contracts.ack import build_ack
from seapost.contracts.digest import ALGORITHM
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS
from seapost.contracts.receipts import ConsumerReceipt
from seapost.database.pool import AsyncPool, open_pool
from seapost.dispatcher.context import Context, new_owner
from seapost.dispatcher.destination import Destination
from seapost.dispatcher.dispatcher import Dispatcher
from seapost.dispatcher.settings import DestinationSettings, DispatcherSettings
from seapost.dispatcher.stopping import Stopping
from seapost.model.delivery import Claim
from seapost.model.outcome import Acknowledged, Outcome
from seapost.telemetry.metrics import Metrics
from tests.kit.builders import BILLING
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually_async
from tests.kit.kernel import Kernel
from tests.kit.monotonic import ManualClock

ROLE: Final = "seapost_dispatcher"
END_SECONDS_MAX: Final = 30.0

QUICK: Final = DestinationSettings(
    name=BILLING,
    backoff_min_seconds=0.01,
    backoff_base_seconds=0.01,
    backoff_max_seconds=0.05,
    retry_after_max_seconds=0.05,
    sweep_seconds=0.05,
)
"""One destination whose times suit a test."""

QUICK_PROCESS: Final = DispatcherSettings(recover_every_seconds=0.05, poll_seconds=(0.005, 0.02))

Script = Callable[[Sequence[Claim]], Awaitable[Sequence[Outcome]]]


def acknowledged(claim: Claim, **changes: object) -> Acknowledged:
    """The honest answer of a claim's consumer; `changes` replaces fields of the receipt, and its digest follows."""
    receipt = ConsumerReceipt.assemble(
        **{
            "destination": claim.destination,
            "consumer_name": claim.member.consumer_name,
            "event_id": str(claim.fence.event_id),
            "event_type": claim.member.event_type,
            "event_schema_version": claim.member.schema_version,
            "event_envelope_digest_algorithm_version": ALGORITHM,
            "event_envelope_sha256": claim.event_digest.hex(),
            "consumer_receipt_ref": f"receipt-{claim.fence.event_id}",
            "outcome": "applied",
            "committed_at": "2026-03-29T01:30:01.000000Z",
            **changes,
        }
    )
    return Acknowledged(receipt.canonical(), build_ack(DEFAULT_RECEIPTS, receipt))


async def acknowledge_all(claims: Sequence[Claim]) -> Sequence[Outcome]:
    """The script of a consumer without problems."""
    return [acknowledged(claim) for claim in claims]


class ScriptedTransport:
    """A transport that notes every call and answers as its script says."""

    def __init__(self, script: Script = acknowledge_all) -> None:
        self.script = script
        self.calls: list[list[Claim]] = []
        self.cancelled = 0

    async def deliver(self, claims: Sequence[Claim], *, timeout_seconds: float) -> Sequence[Outcome]:
        """Note the call and follow the script."""
        del timeout_seconds
        self.calls.append(list(claims))
        try:
            return await self.script(claims)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def aclose(self) -> None:
        """Nothing is held."""

    @property
    def delivered(self) -> list[Claim]:
        """Every claim of every call."""
        return [claim for call in self.calls for claim in call]


class HeldConsumer:
    """A consumer that answers when the test lets it."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.released = asyncio.Event()

    async def __call__(self, claims: Sequence[Claim]) -> Sequence[Outcome]:
        """Say that the call has come, wait, acknowledge."""
        self.called.set()
        await self.released.wait()
        return await acknowledge_all(claims)


class Service:
    """A dispatcher, the task it runs in, and what it counts."""

    def __init__(self, dispatcher: Dispatcher, pool: AsyncPool, metrics: Metrics) -> None:
        self.dispatcher = dispatcher
        self.pool = pool
        self.metrics = metrics
        self.task = asyncio.create_task(dispatcher.run())

    async def end(self) -> None:
        """Stop in order and raise what the run raised."""
        self.dispatcher.stop()
        await asyncio.wait_for(self.task, END_SECONDS_MAX)

    def counted(self, name: str) -> float:
        """The sum of a counter over its labels."""
        lines = self.metrics.exposition().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


@asynccontextmanager
async def serving(
    database: TestDatabase,
    *consumers: tuple[DestinationSettings, ScriptedTransport],
    settings: DispatcherSettings = QUICK_PROCESS,
    listening: bool = True,
) -> AsyncGenerator[Service]:
    """A dispatcher that runs inside the block and has left nothing leased behind it afterwards."""
    async with open_pool(
        database.dsn, part="dispatcher", role=ROLE, role_timeouts=settings.role_timeouts, size_max=8
    ) as pool:
        metrics = Metrics()
        dispatcher = Dispatcher(
            pool,
            [Destination(line, transport) for line, transport in consumers],
            listen_dsn=database.dsn if listening else None,
            listen_role=ROLE,
            settings=settings,
            metrics=metrics,
        )
        service = Service(dispatcher, pool, metrics)
        try:
            yield service
        finally:
            if not service.task.done():
                await service.end()


@asynccontextmanager
async def open_context(
    database: TestDatabase, *, clock: ManualClock | None = None, settings: DispatcherSettings = QUICK_PROCESS
) -> AsyncGenerator[Context]:
    """What the loops share, for tests that turn one of them by hand; time stands still unless the test moves it."""
    clock = clock or ManualClock()
    async with open_pool(database.dsn, part="dispatcher", role=ROLE, size_max=4) as pool:
        yield Context(
            pool=pool,
            settings=settings,
            receipts=DEFAULT_RECEIPTS,
            owner=new_owner(),
            stopping=Stopping(give_back_seconds=settings.give_back_seconds, clock=clock),
            metrics=Metrics(),
            clock=clock,
        )


def destination(name: str) -> DestinationSettings:
    """The quick settings for another destination."""
    return replace(QUICK, name=name)


async def all_acknowledged(kernel: Kernel, number: int) -> None:
    """Wait until so many deliveries are acknowledged."""
    await eventually_async(
        lambda: kernel.count("delivery_acknowledgement") == number, what=f"{number} acknowledgements"
    )
