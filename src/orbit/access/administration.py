"""What operators do: bootstrap, credentials, queues and quotas (OPS-01, OPS-04, OPS-07).

A token is made here, leaves in the answer once, and is known by its digest only from then on (AUT-14). Every function
takes the database as a member of `orbit_operator` (or the owner) and returns the members of the JSON object that the
command prints. They raise OrbitError: `VALIDATION_FAILED` for a name, action or limit that is not allowed and for
something that does not exist, `QUEUE_NOT_FOUND` for an unknown queue.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from orbit.access.token import digest_of, new_token
from orbit.model.states import Action
from orbit.store import administration as store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orbit.store.database import Database

Members = dict[str, object]

TASK_ACTIONS: Final = (
    Action.TASKS_CREATE,
    Action.TASKS_READ,
    Action.TASKS_CANCEL,
    Action.TASKS_RESOLVE,
    Action.TASKS_WORK,
)
"""What a development credential may do by default."""
EVENT_ACTIONS: Final = (Action.EVENTS_MANAGE, Action.EVENTS_READ, Action.EVENTS_CONSUME)
"""What `--event-access` adds, and nothing else ever does (AUT-07)."""


async def bootstrap(
    database: Database,
    *,
    namespace: str,
    application: str,
    queues: Sequence[str],
    credential_name: str = "development",
    max_open_tasks: int | None = None,
    event_access: bool = False,
) -> Members:
    """Make what is missing and issue one new development credential for these queues; no other one changes."""
    token, sha256 = _token()
    actions = (*TASK_ACTIONS, *EVENT_ACTIONS) if event_access else TASK_ACTIONS
    body = await database.run(
        lambda connection: store.bootstrap(
            connection,
            namespace=namespace,
            application=application,
            queues=queues,
            credential_name=credential_name,
            token_sha256=sha256,
            actions=actions,
            max_open_tasks=max_open_tasks,
        )
    )
    return {**_members(body), "token": token}


async def issue_credential(
    database: Database,
    *,
    namespace: str | None = None,
    application: str,
    name: str,
    actions: Sequence[str],
    queues: Sequence[str] | None,
    expires_in_seconds: int | None = None,
) -> Members:
    """Issue one further credential, for all queues when `queues` is None.

    `namespace` may be left out while only one has an application of this name.
    """
    token, sha256 = _token()
    body = await database.run(
        lambda connection: store.issue_credential(
            connection,
            namespace=namespace,
            application=application,
            name=name,
            token_sha256=sha256,
            actions=actions,
            queues=queues,
            expires_in_seconds=expires_in_seconds,
        )
    )
    return {**_members(body), "token": token}


async def rotate_credential(database: Database, *, credential_id: str, grace_seconds: int = 0) -> Members:
    """Issue a new credential in place of an old one, which ends `grace_seconds` from now at the latest.

    Subscriptions stay with the old credential: the new one is another owner (AUT-09).
    """
    token, sha256 = _token()
    body = await database.run(
        lambda connection: store.rotate_credential(
            connection, credential_id=credential_id, token_sha256=sha256, grace_seconds=grace_seconds
        )
    )
    return {**_members(body), "token": token}


async def revoke_credential(database: Database, *, credential_id: str) -> Members:
    """Revoke a credential: every transaction that starts afterwards is refused (AUT-12)."""
    return _members(
        await database.run(lambda connection: store.revoke_credential(connection, credential_id=credential_id))
    )


async def create_queue(
    database: Database, *, namespace: str, name: str, max_running: int | None = None, lease_seconds: int | None = None
) -> Members:
    """Make a queue in an existing namespace; None stands for the usual limit (100 running, 60 s)."""
    return _members(
        await database.run(
            lambda connection: store.create_queue(
                connection, namespace=namespace, name=name, max_running=max_running, lease_seconds=lease_seconds
            )
        )
    )


async def set_quota(
    database: Database, *, namespace: str | None = None, application: str, max_open_tasks: int | None
) -> Members:
    """Set how many open tasks an application may have; None for no limit (TSK-07)."""
    return _members(
        await database.run(
            lambda connection: store.set_quota(
                connection, namespace=namespace, application=application, max_open_tasks=max_open_tasks
            )
        )
    )


def _token() -> tuple[str, bytes]:
    token = new_token()
    digest = digest_of(token)
    if digest is None:
        raise AssertionError("a new token has the form of one")
    return token, digest.sha256


def _members(body: str) -> Members:
    return cast("Members", json.loads(body))
