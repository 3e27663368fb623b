"""What a workload works on, made outside the measured time: namespaces, credentials, claimed attempts, results."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString

import psycopg

from orbit.access import administration
from orbit.access.token import TokenDigest, digest_of
from orbit.store.database import Database

SECRET: Final = "b" * 43
"""Every attempt of a benchmark has this secret, and no other attempt ever."""
SECRET_SHA256: Final = hashlib.sha256(SECRET.encode()).digest()
RESULTS_PER_TRANSACTION: Final = 1000

_CLAIMED: Final[LiteralString] = """
with planned as materialized (
    select orbit.id_new('task') as task_id, orbit.id_new('att') as attempt_id,
        (%(queues)s::text[])[1 + i %% cardinality(%(queues)s::text[])] as queue_id
    from generate_series(1, %(count)s::integer) as i),
made_tasks as (
    insert into orbit.tasks (task_id, namespace_id, application_id, queue_id, state, revision, effect_policy,
        input_json, attempt_count, current_attempt_id, created_by)
    select p.task_id, %(namespace)s, %(application)s, p.queue_id, 'running', 2, 'safe', '{}', 1, p.attempt_id,
        %(credential)s
    from planned as p),
made_attempts as (
    insert into orbit.task_attempts (attempt_id, namespace_id, task_id, number, state, credential_id, worker_id,
        lease_secret_sha256, lease_expires_at)
    select p.attempt_id, %(namespace)s, p.task_id, 1, 'RUNNING', %(credential)s, 'bench', %(secret)s,
        now() + interval '1 day'
    from planned as p),
made_permits as (
    insert into orbit.permits (permit_id, queue_id, attempt_id)
    select orbit.id_new('permit'), p.queue_id, p.attempt_id from planned as p)
select p.queue_id, array_agg(p.attempt_id) from planned as p group by p.queue_id"""

_CONFIRM: Final[LiteralString] = """
select count(*) from unnest(%(attempts)s::text[]) as a (attempt_id) cross join lateral
    orbit.attempt_confirm_v1(%(token)s, a.attempt_id, %(secret)s, 'succeeded', 'none', false, %(result)s)"""


@dataclass(frozen=True, slots=True)
class Tenant:
    """One namespace with its queues (by id, and by name in the same order) and a credential that may do everything."""

    namespace_id: str
    application_id: str
    credential_id: str
    token: str = field(repr=False)
    digest: TokenDigest
    queue_ids: tuple[str, ...]
    queue_names: tuple[str, ...]


async def new_tenant(dsn: str, name: str, queues: int, *, max_open_tasks: int | None = None) -> Tenant:
    """Make a namespace with `queues` queues and a credential."""
    names = tuple(f"queue-{number}" for number in range(queues))
    async with Database(dsn, part="bench", size_max=1) as database:
        made: dict[str, Any] = await administration.bootstrap(
            database,
            namespace=name,
            application="bench",
            queues=names,
            event_access=True,
            max_open_tasks=max_open_tasks,
        )
    token = str(made["token"])
    digest = digest_of(token)
    assert digest is not None  # noqa: S101 - bootstrap has just made it
    return Tenant(
        made["namespace_id"],
        made["application_id"],
        made["credential_id"],
        token,
        digest,
        tuple(queue["queue_id"] for queue in made["queues"]),
        names,
    )


def claim_attempts(dsn: str, tenant: Tenant, count: int) -> dict[str, list[str]]:
    """Put `count` running attempts into the tenant's queues, evenly; their ids by queue."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        rows = connection.execute(
            _CLAIMED,
            {
                "queues": list(tenant.queue_ids),
                "count": count,
                "namespace": tenant.namespace_id,
                "application": tenant.application_id,
                "credential": tenant.credential_id,
                "secret": SECRET_SHA256,
            },
        ).fetchall()
        _ = connection.execute("analyze")
    return {str(queue_id): list(attempts) for queue_id, attempts in rows}


def produce_results(dsn: str, tenant: Tenant, count: int, result_json: str) -> None:
    """Put `count` results into the tenant's journal, by the real function, a thousand in a transaction."""
    attempts = [one for group in claim_attempts(dsn, tenant, count).values() for one in group]
    with psycopg.connect(dsn, autocommit=True) as connection:
        _ = connection.execute("set synchronous_commit = off")
        for start in range(0, len(attempts), RESULTS_PER_TRANSACTION):
            _confirm(connection, tenant, attempts[start : start + RESULTS_PER_TRANSACTION], result_json)
        _ = connection.execute("vacuum analyze")
        _ = connection.execute("checkpoint")


def _confirm(connection: psycopg.Connection[Any], tenant: Tenant, attempts: Sequence[str], result_json: str) -> None:
    _ = connection.execute(
        _CONFIRM,
        {
            "attempts": list(attempts),
            "token": tenant.digest.sha256,
            "secret": SECRET_SHA256,
            "result": result_json,
        },
    )


def result_text(size_bytes: int) -> str:
    """A JSON string of about so many bytes."""
    return '"' + "r" * max(0, size_bytes - 2) + '"'
