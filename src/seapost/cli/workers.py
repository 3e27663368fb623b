"""What `dispatch` and `serve` put together: pools, inboxes and transports, each opened and closed in order.

Connections of one process (F79). `dispatch`: one for each lane of each destination, one to renew, one to recover, one
that listens and, with a monitor, one for its figures; with `--app`, those of `serve` besides. `serve`:
`consumer.pool_size` (8 by default) for the registry, reads and async handlers, and as many again for plain functions.
Several inboxes of a process divide that evenly, with at least two each: one whose handlers hang waits for its own
connections and never for another's (F23). `pool_size` of a section lowers what its process may use; work then waits for
a free connection.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import psycopg

from seapost.cli.databases import connected, dsn_of
from seapost.cli.output import write_stderr
from seapost.cli.settings import AddressSettings, DatabaseSettings, DestinationEntry, Settings
from seapost.database.pool import AsyncPool, open_pool, open_sync_pool
from seapost.dispatcher.destination import Destination
from seapost.dispatcher.settings import DestinationSettings
from seapost.inbox.inbox import Inbox
from seapost.inbox.receive import Receiving, needs_sync_pool
from seapost.model.errors import AddressRefused, InvalidSetting
from seapost.store import backpressure, status
from seapost.telemetry import metrics
from seapost.transport.address import AddressPolicy
from seapost.transport.http import HttpLimits, HttpTransport
from seapost.transport.inprocess import InProcessTransport
from seapost.transport.token import TokenSigner, load_private_key

CONSUMER_POOL_SIZE: Final = 8
INBOX_POOL_SIZE_MIN: Final = 2
BACKOFF_BASE_SECONDS: Final = 0.1
BACKOFF_MAX_SECONDS: Final = 5.0


async def wait_for_database(database: DatabaseSettings, section: str, *, wait_seconds: float) -> str:
    """Return the connection string once the database answers and holds this release's schema.

    A database that refuses is asked again after a growing, jittered delay, so that many processes that start together
    do not come back together (F79).

    Raises:
        psycopg.OperationalError: it did not answer within `wait_seconds`; what it said last.
        SchemaMissing, SchemaNewer, MigrationChanged: it holds another schema.
    """
    dsn = dsn_of(database, section)
    deadline = asyncio.get_running_loop().time() + wait_seconds
    delay = BACKOFF_BASE_SECONDS
    while True:
        try:
            async with connected(
                dsn,
                part="start",
                timeouts=database.timeouts,
                role=database.role,
                behind_pooler=database.behind_pooler,
            ):
                return dsn
        except psycopg.OperationalError as error:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                raise
            if delay == BACKOFF_BASE_SECONDS:
                write_stderr(f"seapost: waiting for [{section}]: {' '.join(str(error).split())}")
            await asyncio.sleep(min(left, random.uniform(0, delay)))
            delay = min(BACKOFF_MAX_SECONDS, delay * 2)


@asynccontextmanager
async def opened_inboxes(
    inboxes: Sequence[Inbox], database: DatabaseSettings, dsn: str
) -> AsyncGenerator[list[Receiving]]:
    """The inboxes, each with pools of its own to their database."""
    size = database.pool_size or CONSUMER_POOL_SIZE
    if len(inboxes) > 1:
        size = max(INBOX_POOL_SIZE_MIN, size // len(inboxes))
    async with AsyncExitStack() as stack:
        yield [await _opened_inbox(stack, inbox, database, dsn, size) for inbox in inboxes]


async def _opened_inbox(
    stack: AsyncExitStack, inbox: Inbox, database: DatabaseSettings, dsn: str, size: int
) -> Receiving:
    pool = await stack.enter_async_context(
        open_pool(
            dsn,
            part="inbox",
            size_max=size,
            role_timeouts=database.timeouts,
            role=database.role,
            behind_pooler=database.behind_pooler,
        )
    )
    sync_pool = None
    if needs_sync_pool(inbox):
        sync_pool = stack.enter_context(
            open_sync_pool(
                dsn,
                part="inbox-threads",
                size_max=size,
                role_timeouts=database.timeouts,
                role=database.role,
                behind_pooler=database.behind_pooler,
            )
        )
    return await stack.enter_async_context(Receiving(inbox, pool, sync_pool))


def chosen_destinations(
    settings: Settings, names: Sequence[str], inboxes: Sequence[Inbox]
) -> dict[str, DestinationEntry]:
    """The destinations to serve: those named, else every one that the settings or the inboxes know.

    Raises:
        InvalidSetting: there is none, or one that nothing says how to reach.
    """
    local = {inbox.destination for inbox in inboxes}
    wanted = list(dict.fromkeys(names)) or sorted({*settings.destinations, *local})
    if not wanted:
        raise InvalidSetting(
            "destinations: there is none; write [destinations.NAME] with its url into seapost.toml, or give --app."
        )
    found: dict[str, DestinationEntry] = {}
    for name in wanted:
        entry = settings.destinations.get(name) or DestinationEntry(DestinationSettings(name=name), AddressSettings())
        if name not in local and entry.address.url is None:
            raise InvalidSetting(f"destinations.{name}.url: it is missing, and no inbox of --app receives {name}.")
        found[name] = entry
    return found


@asynccontextmanager
async def opened_destinations(
    settings: Settings, entries: Mapping[str, DestinationEntry], receivings: Sequence[Receiving]
) -> AsyncGenerator[list[Destination]]:
    """The destinations with their transports: in-process where an inbox serves one, HTTP elsewhere."""
    local = {receiving.inbox.destination: receiving for receiving in receivings}
    signer = None if all(name in local for name in entries) else _signer(settings)
    async with AsyncExitStack() as stack:
        destinations: list[Destination] = []
        for name, entry in entries.items():
            if name in local:
                transport = InProcessTransport(local[name].receive)
            else:
                transport = _http_transport(name, entry, signer)
                stack.push_async_callback(transport.aclose)
            destinations.append(Destination(entry.worker, transport))
        yield destinations


def _http_transport(name: str, entry: DestinationEntry, signer: TokenSigner | None) -> HttpTransport:
    assert entry.address.url is not None  # noqa: S101 - `chosen_destinations` refused that
    try:
        return HttpTransport(
            entry.address.url,
            signer=signer,
            policy=AddressPolicy.allowing(*entry.address.allow_networks),
            limits=HttpLimits(connections_max=max(entry.worker.lanes, 1)),
            ssl_context=_ssl_context(name, entry.address.ca_file),
        )
    except AddressRefused as error:
        raise InvalidSetting(f"destinations.{name}.url: {error.message}") from None


def _ssl_context(name: str, ca_file: Path | None) -> ssl.SSLContext | None:
    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError):
        raise InvalidSetting(f"destinations.{name}.ca_file: it cannot be read as certificates in PEM form.") from None


def _signer(settings: Settings) -> TokenSigner:
    workload = settings.workload
    if workload.private_key_file is None:
        raise InvalidSetting("workload.private_key_file: it is missing; `seapost init` makes a key pair.")
    key = load_private_key(read_file("workload.private_key_file", workload.private_key_file))
    return TokenSigner(key, issuer=workload.issuer, workload=workload.name)


def read_file(setting: str, path: Path) -> bytes:
    """The bytes of a file that a setting names."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidSetting(f"{setting}: {path} cannot be read: {error.strerror}") from None


async def show_backlog(pool: AsyncPool, *, every_seconds: float) -> None:
    """Keep the figures of each destination's queue current for the monitor, until cancelled (MET-01).

    One bounded read at a time, however often somebody scrapes (F83); a database that is away leaves the last figures.
    """
    while True:
        try:
            async with asyncio.timeout(every_seconds * 2), pool.connection() as connection:
                await connection.set_autocommit(True)
                for one in await status.destinations(connection):
                    metrics.backlog(
                        one.destination,
                        pending=one.pending,
                        oldest_seconds=one.oldest_seconds,
                        leased=one.leased,
                        unacknowledged=one.quarantined_unacknowledged,
                        starved_seconds=one.starved_seconds,
                    )
                for limit in await backpressure.limits(connection):
                    metrics.backpressure(limit.destination, closed=limit.is_closed)
        except (psycopg.Error, TimeoutError, OSError):
            pass  # the dispatcher's own loops report a lost database
        await asyncio.sleep(every_seconds)
