"""A projection for tests of rebuild, proof and switch: accounts, whose view holds one balance each, fold by fold."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, LiteralString
from uuid import UUID, uuid4

from psycopg import Connection, sql

from seapost.contracts.events import Event
from seapost.inbox.deciding import Deciding
from seapost.model.delivery import Claim, Fence
from seapost.model.delivery_set import DefinitionQuad, Member, ProjectionTarget
from seapost.model.errors import Retry
from seapost.projections.folded import Folded
from seapost.projections.projection import Projection
from seapost.projections.rebuild import Rebuild, RebuildReport, RebuildSettings
from seapost.projections.sense import SemanticCheck
from seapost.testing.databases import TestDatabase
from tests.kit import builders
from tests.kit.deciding import running
from tests.kit.kernel import Kernel

if TYPE_CHECKING:
    from seapost.model.outcome import Outcome

MOVED: Final = "account.moved@1"
CONSUMER: Final = "account_view"
DESTINATION: Final = "views"
NAME: Final = "accounts"
ROLE: Final = "seapost_consumer"

_TABLE: Final = """
create table public.{table} (
    account text primary key, revision bigint not null, balance bigint not null, trail text not null);
grant select, insert, update on public.{table} to seapost_consumer, seapost_verifier;
"""


class Moved(Event, type=MOVED, producer="shop", aggregate="account"):
    """`amount` is added; `word` is what the fold shall do with it."""

    amount: int
    word: str = "add"


@dataclass
class Acts:
    """What the mutation of a test does, by the word in the payload, and which batches it was given."""

    acts: dict[str, Callable[[], Retry | None]] = field(default_factory=dict[str, Callable[[], Retry | None]])
    batches: list[int] = field(default_factory=list[int])


def table_of(version: str) -> str:
    """Where a version keeps its balances."""
    return f"balance_{version}"


def accounts(
    version: str = "1", *, many: bool = True, acts: Acts | None = None, semantic_check: SemanticCheck | None = None
) -> Projection:
    """One version of the projection, by a set-based mutation or by one for each event; both leave the same rows."""
    watched = Acts() if acts is None else acts
    projection = Projection(
        NAME,
        version,
        consumer=CONSUMER,
        destination=DESTINATION,
        tables=(f"public.{table_of(version)}",),
        semantic_check=semantic_check,
    )
    statement = sql.SQL(
        "insert into public.{table} as t (account, revision, balance, trail)"
        " select * from unnest(%s::text[], %s::bigint[], %s::bigint[], %s::text[])"
        " on conflict (account) do update set revision = excluded.revision,"
        " balance = t.balance + excluded.balance, trail = t.trail || excluded.trail"
    ).format(table=sql.Identifier(table_of(version)))

    def fold(transaction: Connection[Any], items: Sequence[Folded]) -> None:
        watched.batches.append(len(items))
        rows: dict[str, tuple[int, int, str]] = {}
        for item in items:
            event = item.event
            assert isinstance(event, Moved)
            if event.word in watched.acts:
                _ = watched.acts[event.word]()
            _, balance, trail = rows.get(item.key.id, (0, 0, ""))
            rows[item.key.id] = (item.revision, balance + event.amount, f"{trail}{item.revision},")
        transaction.execute(statement, (list(rows), *map(list, zip(*rows.values(), strict=True))))

    if many:
        projection.on_many(Moved)(fold)
        return projection

    @projection.on(Moved)
    def apply(transaction: Connection[Any], event: Moved, context: Deciding) -> Retry | None:
        watched.batches.append(1)
        if event.word in watched.acts:
            held = watched.acts[event.word]()
            if held is not None:
                return held
        aggregate = context.received.aggregate
        row = ([aggregate.id], [aggregate.revision], [event.amount], [f"{aggregate.revision},"])
        transaction.execute(statement, row)
        return None

    return projection


def definition(version: str, *, projection_version: str | None = None) -> bytes:
    """The delivery set whose events freeze this version of the projection."""
    target = {
        "state": "required",
        "projectionName": NAME,
        "projectionVersion": version if projection_version is None else projection_version,
    }
    line = builders.member(
        MOVED,
        DESTINATION,
        consumerName=CONSUMER,
        expectedReceiptType="ProjectionAppliedReceipt",
        projectionTarget=target,
    )
    return builders.canonical(builders.definition_document(version, [line]))


def prepare_database(database: TestDatabase, *versions: str) -> None:
    """Register definitions and versions, the first one active, with a table each."""
    with database.connect(autocommit=True) as connection:
        kernel = Kernel(connection)
        for version in versions:
            connection.execute(sql.SQL(_TABLE).format(table=sql.Identifier(table_of(version))))
            kernel.register(definition(version))
            _ = accounts(version).register(connection, actor="tester")
        kernel.activate(versions[0], definition(versions[0]))


def moved(account: str, revision: int, amount: int = 1, word: str = "add", **changes: object) -> bytes:
    """The envelope of one movement."""
    aggregate = {"kind": "account", "id": account, "revision": revision}
    return builders.envelope(MOVED, payload={"amount": amount, "word": word}, aggregate=aggregate, **changes)


def movements(seed: int, accounts_count: int, events: int) -> list[bytes]:
    """Movements of several accounts, each with its revisions in order, the accounts shuffled."""
    choice = random.Random(seed)
    revisions: dict[str, int] = {}
    envelopes: list[bytes] = []
    for _ in range(events):
        account = f"account-{choice.randrange(accounts_count)}"
        revisions[account] = revisions.get(account, 0) + 1
        envelopes.append(moved(account, revisions[account], choice.randrange(-100, 100)))
    return envelopes


Balance = tuple[str, int, int, str]


def fold_of(envelopes: Iterable[bytes]) -> list[Balance]:
    """What the view must hold: every account's movements in the order of their revisions."""
    moves: dict[str, list[tuple[int, int]]] = {}
    for text in envelopes:
        document = json.loads(text)
        aggregate, payload = document["aggregate"], document["payload"]
        moves.setdefault(aggregate["id"], []).append((aggregate["revision"], payload["amount"]))
    return sorted(
        (
            account,
            max(revision for revision, _ in steps),
            sum(amount for _, amount in steps),
            "".join(f"{revision}," for revision, _ in sorted(steps)),
        )
        for account, steps in moves.items()
    )


def balances(kernel: Kernel, version: str) -> list[Balance]:
    """What the view holds."""
    statement = sql.SQL('select account, revision, balance, trail from public.{table} order by account collate "C"')
    query = statement.format(table=sql.Identifier(table_of(version)))
    return [tuple(row) for row in kernel.connection.execute(query).fetchall()]


def receipts(kernel: Kernel, version: str) -> int:
    """How many receipts a version has."""
    return kernel.value(
        "select count(*) from seapost.inbox_receipt where consumer = %s", f"{CONSUMER}@{NAME}@{version}"
    )


def state(kernel: Kernel, version: str) -> str:
    """The state of a version."""
    return kernel.value("select state from seapost.projection_version where projection_version = %s", version)


def rebuild(database: TestDatabase, projection: Projection, **settings: Any) -> RebuildReport:
    """Run a rebuild as the consumer's role."""
    chosen = RebuildSettings(role=ROLE, **settings)
    return Rebuild(projection, database.dsn, actor="tester", settings=chosen).run()


# Deliveries ------------------------------------------------------------------------------------------------


def delivery(envelope: bytes, version: str = "1") -> Claim:
    """A claim of one movement, frozen to a version of the projection."""
    quad = DefinitionQuad(version, "1", "jcs-sha256-v1", sha256(definition(version)).hexdigest())
    target = ProjectionTarget(NAME, version)
    return Claim(
        destination=DESTINATION,
        fence=Fence(builders.event_id_of(envelope), 41, uuid4()),
        attempt_number=1,
        failure_count=0,
        lost_count=0,
        company=1,
        member=Member(
            1,
            quad,
            MOVED,
            "1",
            DESTINATION,
            CONSUMER,
            True,  # noqa: FBT003
            "ProjectionAppliedReceipt",
            "1",
            target,
        ),
        event_digest=sha256(envelope).digest(),
        envelope=envelope,
        available_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


async def deliver(database: TestDatabase, projection: Projection, *claims: Claim) -> list[Outcome]:
    """Hand deliveries to the inbox of a version, as the consumer's role."""
    async with running(database, projection.inbox) as inbox:
        return await inbox.receive(*claims)


def event_ids(envelopes: Iterable[bytes]) -> list[UUID]:
    """The identifiers of envelopes."""
    return [builders.event_id_of(text) for text in envelopes]


GAPS: Final[LiteralString] = "select count(*) from seapost.projection_gap where resolved_at is null"
