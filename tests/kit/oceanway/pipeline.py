"""The whole of OceanWay in one process: five real databases, real dispatchers and workers, and no loop but ours.

Every hop is the real one: claim, call, receipt, settle; lease, read with a token, decide, write. Only time is missing:
`settle` repeats deliveries and works until nothing is due.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Self

import psycopg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oceanway.cli.composition import inboxes_of, receipts, register_reads, steps_of
from oceanway.installation.keys import CALLERS, WorkloadVerifier
from oceanway.installation.layout import DATABASE_OF, DESTINATIONS, DISPATCHED, SERVED, WORKS, Database
from oceanway.reads.client import LocalReader
from oceanway.reads.server import Serving
from seapost.database.pool import open_pool, open_sync_pool
from seapost.inbox.receive import Receiving, needs_sync_pool
from seapost.testing import drain
from seapost.testing.databases import DatabaseServer, TestDatabase
from seapost.transport.token import TokenSigner
from tests.kit.oceanway.database import new_database

if TYPE_CHECKING:
    from oceanway.works.loop import Step
    from seapost.database.pool import SyncPool
    from seapost.inbox.inbox import Inbox

ISSUER: Final = "oceanway-test"
BATCH: Final = 50
ROUNDS_MAX: Final = 60
ATTEMPTS_MAX: Final = 5


@dataclass(slots=True)
class Pipeline:
    """Five databases and everything that works on them."""

    databases: dict[Database, TestDatabase]
    signers: dict[str, TokenSigner]
    verifier: WorkloadVerifier
    servings: dict[str, Serving] = field(default_factory=dict[str, Serving])
    pools: dict[Database, SyncPool] = field(default_factory=dict[Database, "SyncPool"])
    _inboxes: dict[str, Inbox] = field(default_factory=dict[str, "Inbox"])
    _steps: dict[str, list[tuple[str, Step]]] = field(default_factory=dict[str, "list[tuple[str, Step]]"])
    _stack: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def open(cls, server: DatabaseServer) -> Self:
        """Five new databases; `close` drops them."""
        keys = {workload: Ed25519PrivateKey.generate() for workload in CALLERS}
        pipeline = cls(
            {database: new_database(server, database) for database in Database},
            {workload: TokenSigner(key, issuer=ISSUER, workload=workload) for workload, key in keys.items()},
            WorkloadVerifier({workload: key.public_key() for workload, key in keys.items()}, issuer=ISSUER),
        )
        for database, one in pipeline.databases.items():
            pipeline._stack.callback(server.drop, one)
            pipeline.pools[database] = pipeline._stack.enter_context(open_sync_pool(one.dsn, part="test", size_max=4))
        for owner in SERVED:
            serving = Serving(owner, verifier=pipeline.verifier)
            register_reads(serving, pipeline.pools[DATABASE_OF[owner]])
            pipeline.servings[owner] = serving
        for owner in SERVED:
            for inbox in inboxes_of(owner, pipeline.reader(f"serve.{owner}")):
                pipeline._inboxes[inbox.destination] = inbox
        pipeline.start_works()
        return pipeline

    def start_works(self) -> None:
        """Start the works, or start them again: what a worker reads once at its start is read now."""
        for loop, owner in WORKS.items():
            reader, pool = self.reader(f"work.{loop}"), self.pools[DATABASE_OF[owner]]
            self._steps[loop] = steps_of(loop, pool, reader, lease=timedelta(seconds=30))

    def close(self) -> None:
        """Drop the databases."""
        self._stack.close()

    def reader(self, workload: str) -> LocalReader:
        """Ask owners as this workload."""
        return LocalReader(self.servings.values(), signer=self.signers[workload])

    def connect(self, database: Database) -> psycopg.Connection[Any]:
        """A session of the superuser, for what stands outside of the pipeline."""
        return psycopg.connect(self.databases[database].dsn)

    def deliver(self) -> int:
        """Deliver all that is due in every database; how many deliveries were acknowledged."""
        return asyncio.run(self._deliver())

    async def _deliver(self) -> int:
        total = 0
        async with AsyncExitStack() as stack:
            receivers = {
                name: await stack.enter_async_context(await self._receiving(stack, inbox))
                for name, inbox in self._inboxes.items()
            }
            for database, destinations in DISPATCHED.items():
                pool = await stack.enter_async_context(open_pool(self.databases[database].dsn, part="d", size_max=4))
                context = drain.drain_context(pool, receipts())
                lines = [drain.Line(context, name, receivers[name].receive) for name in destinations]
                total += await _until_idle(lines)
        return total

    async def _receiving(self, stack: AsyncExitStack, inbox: Inbox) -> Receiving:
        database = self.databases[DATABASE_OF[DESTINATIONS[inbox.destination]]]
        pool = await stack.enter_async_context(open_pool(database.dsn, part="i", size_max=4))
        threads = None
        if needs_sync_pool(inbox):
            threads = stack.enter_context(open_sync_pool(database.dsn, part="h", size_max=4))
        return Receiving(inbox, pool, threads)

    def work(self, *loops: str) -> int:
        """Run every work that can be leased, of these loops or of all; how many there were."""
        total = 0
        while done := sum(step(BATCH) for loop in loops or tuple(WORKS) for _, step in self._steps[loop]):
            total += done
        return total

    def settle(self) -> None:
        """Deliver and work until nothing is due.

        Raises:
            AssertionError: there is no end to it.
        """
        for _ in range(ROUNDS_MAX):
            if not self.deliver() + self.work():
                return
        raise AssertionError(f"something was due after {ROUNDS_MAX} rounds")


async def _until_idle(lines: list[drain.Line]) -> int:
    drained = drain.Drained()
    while any([await line.turn(drained, ATTEMPTS_MAX) for line in lines]):
        pass
    return drained.acknowledged
