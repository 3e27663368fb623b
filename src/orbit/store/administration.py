"""Calls of the operator functions: one function, one transaction, one round trip (TX-21, TX-22)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from orbit.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    Connection = AsyncConnection[Any]


async def _body(connection: Connection, query: LiteralString, arguments: Sequence[object]) -> str:
    ((body,),) = await call(connection, query, arguments)
    return str(body)


async def bootstrap(
    connection: Connection,
    *,
    namespace: str,
    application: str,
    queues: Sequence[str],
    credential_name: str,
    token_sha256: bytes,
    actions: Sequence[str],
    max_open_tasks: int | None,
) -> str:
    """Make what is missing and one new credential; the JSON body without the token (OPS-01)."""
    arguments = (
        namespace,
        application,
        list(queues),
        credential_name,
        token_sha256,
        list(actions),
        max_open_tasks,
    )
    return await _body(
        connection,
        "select orbit.access_bootstrap_v1(%s, %s, %s::text[], %s, %s, %s::text[], %s::integer)",
        arguments,
    )


async def issue_credential(
    connection: Connection,
    *,
    namespace: str | None,
    application: str,
    name: str,
    token_sha256: bytes,
    actions: Sequence[str],
    queues: Sequence[str] | None,
    expires_in_seconds: int | None,
) -> str:
    """Issue one credential, for all queues when `queues` is None; the JSON body without the token (OPS-07)."""
    arguments = (
        namespace,
        application,
        name,
        token_sha256,
        list(actions),
        queues is None,
        list(queues or ()),
        expires_in_seconds,
    )
    return await _body(
        connection,
        "select orbit.credential_issue_v1(%s, %s, %s, %s, %s::text[], %s, %s::text[], %s::integer)",
        arguments,
    )


async def rotate_credential(
    connection: Connection, *, credential_id: str, token_sha256: bytes, grace_seconds: int
) -> str:
    """Replace a credential by a new one; the JSON body of the new one without the token (OPS-04)."""
    return await _body(
        connection,
        "select orbit.credential_rotate_v1(%s, %s, %s::integer)",
        (credential_id, token_sha256, grace_seconds),
    )


async def revoke_credential(connection: Connection, *, credential_id: str) -> str:
    """Revoke a credential; the JSON body with the moment (OPS-04)."""
    return await _body(connection, "select orbit.credential_revoke_v1(%s)", (credential_id,))


async def create_queue(
    connection: Connection, *, namespace: str, name: str, max_running: int | None, lease_seconds: int | None
) -> str:
    """Make a queue; its JSON body (OPS-04). None stands for the usual limit."""
    return await _body(
        connection,
        "select orbit.queue_create_v1(%s, %s, %s::integer, %s::integer)",
        (namespace, name, max_running, lease_seconds),
    )


async def set_quota(
    connection: Connection, *, namespace: str | None, application: str, max_open_tasks: int | None
) -> str:
    """Set how many open tasks an application may have, None for no limit; the JSON body (OPS-04)."""
    return await _body(
        connection,
        "select orbit.quota_set_v1(%s, %s, %s::integer)",
        (namespace, application, max_open_tasks),
    )
