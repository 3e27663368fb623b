"""The task platform on one connection: the SQL functions of tasks as short Python calls, for scripted races and faults.

    place = found(connection)
    work = Platform(connection, place)
    receipt = work.finish("succeeded", result="1.00")

Every call is one statement in whatever transaction the connection is in; nothing is committed here. Texts go in and
come out exactly.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, LiteralString

from psycopg import Connection
from psycopg.rows import tuple_row

TASK_ACTIONS: Final = ("tasks:create", "tasks:read", "tasks:cancel", "tasks:resolve", "tasks:work")
NUMBERS: Final[Iterator[int]] = count(1)
ANY_REQUEST: Final = "a" * 64
RESULT_TYPES: Final = ("task.succeeded", "task.failed", "task.cancelled", "task.needs_review")

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace with one application, its queues and a credential for them."""

    namespace_id: str
    application_id: str
    credential_id: str
    queues: tuple[str, ...]
    queue_ids: tuple[str, ...]
    token_sha256: bytes


@dataclass(frozen=True, slots=True)
class Held:
    """An attempt that a worker holds."""

    task_id: str
    attempt_id: str
    number: int
    secret_sha256: bytes


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a confirmation returned."""

    text: str
    replayed: bool
    wake_queue_id: str | None

    @property
    def body(self) -> dict[str, Any]:
        """The receipt, read."""
        return json.loads(self.text)

    @property
    def sequence(self) -> int | None:
        """Sequence of the receipt; None after a requeue."""
        return self.body["sequence"]


def found(
    connection: Connection[Any],
    *,
    namespace: str | None = None,
    application: str = "shop",
    queues: Sequence[str] = ("billing",),
    actions: Sequence[str] = TASK_ACTIONS,
    max_open_tasks: int | None = None,
) -> Place:
    """Make what is missing of a namespace and a new credential in it; a name of its own by default."""
    token = secrets.token_bytes(32)
    row = connection.execute(
        "select orbit.access_bootstrap_v1(%s, %s, %s, %s, %s, %s, %s)",
        (
            namespace or f"namespace-{next(NUMBERS)}",
            application,
            list(queues),
            f"credential-{next(NUMBERS)}",
            token,
            list(actions),
            max_open_tasks,
        ),
    ).fetchone()
    assert row is not None
    body = json.loads(row[0])
    ids = [
        row[0]
        for name in queues
        for row in connection.execute(
            "select queue_id from orbit.queues where namespace_id = %s and name = %s", (body["namespace_id"], name)
        )
    ]
    return Place(body["namespace_id"], body["application_id"], body["credential_id"], tuple(queues), tuple(ids), token)


class Platform:
    """The task functions, called with one credential; `queue` is the first one unless another is named."""

    def __init__(self, connection: Connection[Any], place: Place, queue: str | None = None) -> None:
        self.connection = connection
        self.place = place
        self.queue = queue or place.queues[0]

    @property
    def queue_id(self) -> str:
        """Id of the queue."""
        return self.place.queue_ids[self.place.queues.index(self.queue)]

    def rows(self, query: LiteralString, *arguments: object) -> list[Row]:
        """Every row of a statement."""
        cursor = self.connection.cursor(row_factory=tuple_row)
        return cursor.execute(query, arguments or None).fetchall()

    def value(self, query: LiteralString, *arguments: object) -> Any:  # noqa: ANN401 - a value of the database
        """The only value of a statement."""
        ((found_value,),) = self.rows(query, *arguments)
        return found_value

    def submit(
        self,
        *,
        policy: str | None = "unsafe",
        max_attempts: int | None = 3,
        input_json: str = "{}",
        key: str | None = None,
        request: str = ANY_REQUEST,
    ) -> Row:
        """Submit; returns status, body text, replayed, wake."""
        (row,) = self.rows(
            "select * from orbit.task_submit_v1(%s, %s, %s, %s, %s, %s, %s)",
            self.place.token_sha256,
            self.queue,
            input_json,
            policy,
            max_attempts,
            key or f"key-{next(NUMBERS)}",
            request,
        )
        return row

    def submitted(self, *, policy: str = "unsafe", max_attempts: int = 3) -> str:
        """Submit; returns the id of the task."""
        return json.loads(self.submit(policy=policy, max_attempts=max_attempts)[1])["task_id"]

    def claim(self, maximum: int = 1, *, worker: str = "worker-1") -> list[Held]:
        """Claim up to `maximum` tasks, oldest first."""
        digests: list[bytes] = [secrets.token_bytes(32) for _ in range(maximum)]
        rows = self.rows(
            "select i, task_id, attempt_id, number from orbit.task_claim_v1(%s, %s, %s, %s, %s, null)",
            self.place.token_sha256,
            self.queue,
            worker,
            maximum,
            digests,
        )
        return [Held(task, attempt, number, digests[int(line) - 1]) for line, task, attempt, number in rows]

    def start(self, *, policy: str = "unsafe", max_attempts: int = 3) -> Held:
        """Submit a task and claim it; nothing else may be ready in the queue."""
        task_id = self.submitted(policy=policy, max_attempts=max_attempts)
        (held,) = self.claim()
        assert held.task_id == task_id
        return held

    def confirm(
        self,
        held: Held,
        outcome: str = "succeeded",
        *,
        effect: str | None = "none",
        retryable: bool | None = False,
        result: str | None = None,
    ) -> Confirmed:
        """Confirm an attempt."""
        (row,) = self.rows(
            "select * from orbit.attempt_confirm_v1(%s, %s, %s, %s, %s, %s, %s)",
            self.place.token_sha256,
            held.attempt_id,
            held.secret_sha256,
            outcome,
            effect,
            retryable,
            result,
        )
        return Confirmed(*row)

    def finish(self, outcome: str = "succeeded", *, result: str | None = None) -> Confirmed:
        """Submit, claim and confirm one task."""
        return self.confirm(self.start(), outcome, result=result)

    def heartbeat(self, held: Held) -> Any:  # noqa: ANN401 - a time
        """Renew an attempt; returns the deadline."""
        return self.value(
            "select orbit.attempt_heartbeat_v1(%s, %s, %s)",
            self.place.token_sha256,
            held.attempt_id,
            held.secret_sha256,
        )

    def cancel(self, task_id: str, revision: int, *, key: str | None = None, request: str = ANY_REQUEST) -> Row:
        """Cancel; returns status, body text, replayed, wake."""
        (row,) = self.rows(
            "select * from orbit.task_cancel_v1(%s, %s, %s, %s, %s, %s)",
            self.place.token_sha256,
            task_id,
            revision,
            "no longer wanted",
            key or f"key-{next(NUMBERS)}",
            request,
        )
        return row

    def resolve(
        self,
        task_id: str,
        revision: int,
        outcome: str = "succeeded",
        *,
        result: str | None = None,
        given: bool = False,
        key: str | None = None,
    ) -> Row:
        """Resolve a task that needs review; returns status, body text, replayed, wake."""
        (row,) = self.rows(
            "select * from orbit.task_resolve_v1(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            self.place.token_sha256,
            task_id,
            revision,
            outcome,
            result,
            given,
            "looked at by hand",
            key or f"key-{next(NUMBERS)}",
            ANY_REQUEST,
        )
        return row

    def lose(self, held: Held) -> None:
        """Let the lease of an attempt run out; needs a superuser."""
        self.connection.execute(
            "update orbit.task_attempts set lease_expires_at = clock_timestamp() - interval '1 second'"
            " where attempt_id = %s",
            (held.attempt_id,),
        )

    def recover(self, held: Held) -> Row:
        """Recover an attempt; returns recovered, event type, sequence, wake."""
        (row,) = self.rows("select * from orbit.attempt_recover_v1(%s)", held.attempt_id)
        return row

    def make_ready(self) -> None:
        """Let the waiting time of requeued tasks pass; needs a superuser."""
        self.connection.execute(
            "update orbit.tasks set available_at = clock_timestamp() where queue_id = %s and state = 'queued'",
            (self.queue_id,),
        )

    def task(self, task_id: str) -> dict[str, Any]:
        """The body of a task, read."""
        return json.loads(self.value("select orbit.task_get_v1(%s, %s)", self.place.token_sha256, task_id))

    def journal(self) -> list[Row]:
        """Sequence, event id, task id, type and snapshot text of every result of the namespace, in order."""
        return self.rows(
            "select sequence, event_id, task_id, type, snapshot_json from orbit.result_events"
            " where namespace_id = %s order by sequence",
            self.place.namespace_id,
        )

    def audits(self, action: str) -> list[dict[str, Any]]:
        """Details of the audit rows of an action, oldest first."""
        rows = self.rows(
            "select detail_json from orbit.audit_log where namespace_id = %s and action = %s order by created_at",
            self.place.namespace_id,
            action,
        )
        return [json.loads(detail) for (detail,) in rows]


def request_digest(text: str) -> str:
    """A digest of a request's body, as the server would send it."""
    return hashlib.sha256(text.encode()).hexdigest()


_DEFECTS: Final[LiteralString] = """
select 'gap', r.namespace_id || ' ' || r.sequence
from (select namespace_id, sequence, row_number() over (partition by namespace_id order by sequence) as place
      from orbit.result_events) as r
where r.sequence <> r.place
union all
select 'state event without journal row', e.event_id from orbit.events as e
left join orbit.result_events as r using (event_id)
where (e.type in ('task.succeeded', 'task.failed', 'task.cancelled', 'task.needs_review'))
    is distinct from (r.event_id is not null and r.type = e.type and r.task_id = e.task_id)
union all
select 'journal row without state event', r.event_id from orbit.result_events as r
where not exists (select from orbit.events as e where e.event_id = r.event_id)
union all
select 'head', s.namespace_id from orbit.event_streams as s
where s.last_sequence <> (select count(*) from orbit.result_events as r where r.namespace_id = s.namespace_id)
union all
select 'revisions', t.task_id from orbit.tasks as t
where array(select e.task_revision from orbit.events as e where e.task_id = t.task_id order by e.task_revision)
    <> array(select generate_series(1, t.revision))
union all
select 'permit', coalesce(a.attempt_id, p.attempt_id) from orbit.permits as p
full join (select attempt_id from orbit.task_attempts where state = 'RUNNING') as a using (attempt_id)
where a.attempt_id is null or p.attempt_id is null
union all
select 'receipt', x.receipt_id from orbit.execution_receipts as x
where (x.response_json::json ->> 'sequence')::bigint is distinct from
    (select r.sequence from orbit.result_events as r where r.event_id = x.event_id)
"""


def assert_tasks_whole(connection: Connection[Any]) -> None:
    """Fail unless the journal is gapless and agrees with state events, receipts, revisions and permits (T-P01)."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        broken = cursor.execute(_DEFECTS).fetchall()
    assert not broken, f"{len(broken)} defects, for instance {broken[:3]}"
