"""The kernel's SQL functions in plain SQL, one method each, over one connection.

Tests of the database call it as any program in any language would: no room of Seapost between the test and the
function under test. Errors are psycopg's own; `sqlstate` names them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest

from seapost.database.installer import GuardLevel
from seapost.model.delivery import Claim, Fence
from seapost.model.delivery_set import DefinitionQuad, Member, ProjectionTarget
from tests.kit import builders
from tests.kit.builders import BILLING, ROUTES
from tests.kit.clock import Clock
from tests.kit.database import DatabaseServer, TestDatabase

Row = tuple[Any, ...]

HALF_MINUTE = timedelta(seconds=30)
NO_DELAY = timedelta()


class Kernel:
    """One session that plays every role: it owns the schema, or has set a role with less."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.connection = connection
        self._members: dict[int, Member] = {}

    def rows(self, query: LiteralString, *arguments: object) -> list[Row]:
        """Every row of a query."""
        return self.connection.execute(query, arguments, binary=True).fetchall()

    def row(self, query: LiteralString, *arguments: object) -> Row:
        """The only row of a query."""
        (found,) = self.rows(query, *arguments)
        return found

    def value(self, query: LiteralString, *arguments: object) -> Any:  # noqa: ANN401 - what the column holds
        """The only value of a query."""
        (found,) = self.row(query, *arguments)
        return found

    def run(self, statement: LiteralString, *arguments: object) -> None:
        """Run a statement without a result."""
        self.connection.execute(statement, arguments or None)

    def count(self, table: LiteralString) -> int:
        """How many rows a table or view of the schema has."""
        return self.value("select count(*) from seapost." + table)  # noqa: S608 - a literal

    # Delivery sets ----------------------------------------------------------------------------------------

    def register(self, candidate: bytes, *, release: str = "test", actor: str = "tester") -> int:
        """Register a definition by its candidate bytes."""
        return self.value("select seapost.delivery_set_register_v1(%s, %s, %s)", candidate, release, actor)

    def activate(self, version: str, candidate: bytes, *, actor: str = "tester") -> None:
        """Activate a registered definition."""
        self.run("select seapost.delivery_set_activate_v1(%s, %s, %s)", version, builders.digest(candidate), actor)

    def route(self, version: str = "1", routes: Mapping[str, Sequence[str]] = ROUTES) -> bytes:
        """Register and activate the definition of these routes."""
        candidate = builders.definition(version, routes)
        self.register(candidate)
        self.activate(version, candidate)
        return candidate

    # Producer ---------------------------------------------------------------------------------------------

    def append(self, *envelopes: bytes) -> int:
        """Append envelopes in the session's transaction; how many were new."""
        return self.value("select seapost.outbox_append_v1(%s)", list(envelopes))

    def append_new(self, event_type: str = builders.PLACED, count: int = 1) -> list[UUID]:
        """Append fresh events of one type; their ids in order."""
        envelopes = [builders.envelope(event_type) for _ in range(count)]
        self.append(*envelopes)
        return [builders.event_id_of(text) for text in envelopes]

    # Dispatcher -------------------------------------------------------------------------------------------

    def claim(
        self,
        destination: str = BILLING,
        *,
        limit: int = 100,
        owner: str = "worker",
        lease: timedelta = HALF_MINUTE,
        low: datetime | Sequence[datetime | None] | None = None,
        suspects: bool = False,
        first_lane: int = 0,
    ) -> list[Claim]:
        """Claim due deliveries; `low` alone is the hint of lane 0."""
        found = self.rows(
            "select * from seapost.delivery_claim_v1(%s, %s::int, %s, %s, %s::timestamptz[], %s, %s::int)",
            destination,
            limit,
            owner,
            lease,
            [low] if isinstance(low, datetime) else low,
            suspects,
            first_lane,
        )
        return [self.claim_of(destination, row) for row in found]

    def claim_of(self, destination: str, row: Row) -> Claim:
        """A claim from a row of delivery_claim_v1."""
        return Claim(
            destination=destination,
            fence=Fence(*row[:3]),
            attempt_number=row[3],
            failure_count=row[4],
            lost_count=row[5],
            company=row[6],
            member=self.member(row[7]),
            event_digest=bytes(row[8]),
            envelope=bytes(row[9]),
            available_at=row[10],
            lane=row[11],
        )

    def claim_one(self, destination: str = BILLING, *, lease: timedelta = HALF_MINUTE) -> Claim:
        """Claim the one delivery that is due, suspect or not."""
        (claim,) = self.claim(destination, lease=lease) or self.claim(destination, lease=lease, suspects=True)
        return claim

    def acknowledge(
        self,
        *claims: Claim,
        destination: str | None = None,
        receipts: Sequence[bytes] | None = None,
        receipt_type: str = "ConsumerReceipt",
        schema_version: str = "1",
        algorithm: str = "jcs-sha256-v1",
    ) -> list[Row]:
        """Acknowledge claims with their right receipts, or with these; the refused rows."""
        candidates = [builders.receipt_for(claim) for claim in claims] if receipts is None else list(receipts)
        return self.rows(
            "select * from seapost.delivery_acknowledge_v1(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            destination or claims[0].destination,
            *_fences(claims),
            [claim.event_digest for claim in claims],
            receipt_type,
            schema_version,
            algorithm,
            [f"receipt-{claim.fence.event_id}" for claim in claims],
            candidates,
        )

    def retry(
        self,
        *claims: Claim,
        destination: str | None = None,
        delay: timedelta = NO_DELAY,
        code: str = "timeout",
        reference: str | None = None,
        counted: bool = True,
        lost: bool = False,
    ) -> list[Row]:
        """Finish claims as retryable; the refused rows."""
        size = len(claims)
        return self.rows(
            "select * from seapost.delivery_retry_v1(%s, %s, %s, %s, %s::interval[], %s, %s::text[], %s, %s)",
            destination or claims[0].destination,
            *_fences(claims),
            [delay] * size,
            [code] * size,
            [reference] * size,
            [counted] * size,
            [lost] * size,
        )

    def quarantine(
        self,
        *claims: Claim,
        destination: str | None = None,
        code: str = "schema_invalid",
        reference: str | None = None,
    ) -> list[Row]:
        """Finish claims as non-retryable; the refused rows."""
        size = len(claims)
        return self.rows(
            "select * from seapost.delivery_quarantine_v1(%s, %s, %s, %s, %s, %s::text[])",
            destination or claims[0].destination,
            *_fences(claims),
            [code] * size,
            [reference] * size,
        )

    def renew(self, *claims: Claim, destination: str | None = None, lease: timedelta = HALF_MINUTE) -> set[UUID]:
        """Lengthen leases; the renewed events."""
        found = self.rows(
            "select * from seapost.delivery_renew_v1(%s, %s, %s, %s, %s)",
            destination or claims[0].destination,
            *_fences(claims),
            lease,
        )
        return {row[0] for row in found}

    def recover(self, *, limit: int = 1000, delay: timedelta = NO_DELAY) -> dict[str, int]:
        """Recover expired leases; how many per destination."""
        return dict(self.rows("select * from seapost.delivery_recover_v1(%s::int, %s)", limit, delay))

    # What the database says -------------------------------------------------------------------------------

    def status(self, event_id: UUID, destination: str = BILLING) -> str | None:
        """The status of a delivery as the view shows it."""
        return self.value(
            "select status from seapost.outbox_deliveries where event_id = %s and destination = %s",
            event_id,
            destination,
        )

    def published_at(self, event_id: UUID) -> datetime | None:
        """When the event was published."""
        return self.value("select published_at from seapost.outbox_events where event_id = %s", event_id)

    def defects(self) -> list[Row]:
        """Every row of audit_places."""
        return self.rows("select * from seapost.audit_places")

    def member(self, member_id: int) -> Member:
        """A frozen member by its short name."""
        if member_id not in self._members:
            row = self.row(
                "select member_id, delivery_set_version, delivery_set_definition_schema_version,"
                " delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest, event_type,"
                " schema_version, destination, consumer_name, mandatory, expected_receipt_type,"
                " expected_receipt_schema_version, projection_name, projection_version"
                " from seapost.delivery_set_members where member_id = %s",
                member_id,
            )
            self._members[member_id] = Member(
                row[0],
                DefinitionQuad(*row[1:5]),
                *row[5:12],
                projection=None if row[12] is None else ProjectionTarget(row[12], row[13]),
            )
        return self._members[member_id]


def _fences(claims: Sequence[Claim]) -> tuple[list[UUID], list[int], list[UUID]]:
    return (
        [claim.fence.event_id for claim in claims],
        [claim.fence.attempt_id for claim in claims],
        [claim.fence.token for claim in claims],
    )


@contextmanager
def refused(sqlstate: str, *words: str) -> Generator[None]:
    """The block raises a database error of this SQLSTATE whose message or detail holds the words."""
    with pytest.raises(psycopg.Error) as caught:
        yield
    assert caught.value.sqlstate == sqlstate, caught.value
    text = f"{caught.value.diag.message_primary} {caught.value.diag.message_detail}"
    for word in words:
        assert word in text, text


@contextmanager
def opened(database: TestDatabase) -> Generator[Kernel]:
    """A superuser's session in autocommit mode, with the usual routes; afterwards every invariant must hold."""
    kernel = Kernel(database.connect(autocommit=True))
    kernel.route()
    yield kernel
    database.assert_places()


@contextmanager
def _shared(server: DatabaseServer, level: GuardLevel) -> Generator[Kernel]:
    database = server.create(level)
    with opened(database) as kernel:
        yield kernel
    server.drop(database)


@pytest.fixture
def kernel(each_guard_database: TestDatabase) -> Iterator[Kernel]:
    """Give a kernel with the usual routes, once at guard level lean and once at strict."""
    with opened(each_guard_database) as kernel:
        yield kernel


@pytest.fixture
def lean_kernel(database: TestDatabase) -> Iterator[Kernel]:
    """Give a kernel with the usual routes at guard level lean."""
    with opened(database) as kernel:
        yield kernel


@pytest.fixture
def strict_kernel(strict_database: TestDatabase) -> Iterator[Kernel]:
    """Give a kernel with the usual routes at guard level strict."""
    with opened(strict_database) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def shared_lean(database_server: DatabaseServer) -> Iterator[Kernel]:
    """Give a lean kernel that the tests of a module share: for tests that leave nothing behind."""
    with _shared(database_server, GuardLevel.LEAN) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def shared_strict(database_server: DatabaseServer) -> Iterator[Kernel]:
    """Give a strict kernel that the tests of a module share: for tests that leave nothing behind."""
    with _shared(database_server, GuardLevel.STRICT) as kernel:
        yield kernel


@pytest.fixture(params=list(GuardLevel), ids=str)
def shared_kernel(request: pytest.FixtureRequest) -> Kernel:
    """Run the test on both shared kernels."""
    return request.getfixturevalue(f"shared_{request.param}")


@pytest.fixture
def clock(kernel: Kernel) -> Clock:
    """Hold the clock of the kernel's database."""
    return Clock(kernel.connection)
