"""`orbit bootstrap` and `orbit credentials`: who may use Orbit. A token is shown once, and kept only as its digest."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from orbit.access import administration
from orbit.access.administration import EVENT_ACTIONS
from orbit.cli.databases import changed
from orbit.cli.exit_codes import ExitCode
from orbit.cli.options import ApplicationOption, DsnOption, JsonOption, NamespaceOption, SomeNamespaceOption
from orbit.model.limits import OPEN_TASKS_MAX
from seapost.cli.output import Output

app = typer.Typer(help="Issue, rotate and revoke credentials.", no_args_is_help=True)

CredentialArgument = Annotated[str, typer.Argument(metavar="CREDENTIAL_ID", help="Id of the credential, `cred_…`.")]
QueuesOption = Annotated[
    list[str] | None, typer.Option("--queue", metavar="Q", help="Name of a queue; may be repeated.")
]


def bootstrap(
    namespace: NamespaceOption,
    application: ApplicationOption,
    queue: Annotated[list[str], typer.Option("--queue", metavar="Q", help="Name of a queue; may be repeated.")],
    credential_name: Annotated[
        str, typer.Option("--credential-name", metavar="C", help="Name of the new credential.")
    ] = "development",
    max_open_tasks: Annotated[
        int | None,
        typer.Option("--max-open-tasks", min=1, max=OPEN_TASKS_MAX, help="Most open tasks of the application."),
    ] = None,
    event_access: Annotated[
        bool, typer.Option("--event-access", help=f"Also grant {', '.join(EVENT_ACTIONS)}.")
    ] = False,
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Create what is missing of a namespace, an application and its queues, and issue a new development credential.

    The credential may do everything with tasks of these queues, and with --event-access have subscriptions. One that
    exists is never changed. The answer is one JSON object in both forms; the token in it is shown this once.
    """
    del as_json
    return _show_once(
        asyncio.run(
            changed(
                dsn,
                lambda database: administration.bootstrap(
                    database,
                    namespace=namespace,
                    application=application,
                    queues=queue,
                    credential_name=credential_name,
                    max_open_tasks=max_open_tasks,
                    event_access=event_access,
                ),
            )
        )
    )


@app.command("issue")
def issue(
    application: ApplicationOption,
    name: Annotated[str, typer.Option("--name", metavar="C", help="Name of the new credential.")],
    action: Annotated[
        list[str],
        typer.Option("--action", metavar="ACTION", help="For instance tasks:work or events:consume; may be repeated."),
    ],
    namespace: SomeNamespaceOption = None,
    queue: QueuesOption = None,
    all_queues: Annotated[
        bool, typer.Option("--all-queues", help="All queues, also later ones, in place of --queue.")
    ] = False,
    expires_in: Annotated[
        int | None, typer.Option("--expires-in", min=1, metavar="SECONDS", help="Ends by itself after so long.")
    ] = None,
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Issue one further credential with exactly these actions; no action implies another.

    A credential that shall consume its own subscriptions needs events:manage and events:consume, since who creates a
    subscription owns it. The answer is one JSON object in both forms; the token in it is shown this once.
    """
    del as_json
    if all_queues is bool(queue):
        raise typer.BadParameter("give either --queue or --all-queues")
    return _show_once(
        asyncio.run(
            changed(
                dsn,
                lambda database: administration.issue_credential(
                    database,
                    namespace=namespace,
                    application=application,
                    name=name,
                    actions=action,
                    queues=None if all_queues else queue,
                    expires_in_seconds=expires_in,
                ),
            )
        )
    )


@app.command("rotate")
def rotate(
    credential: CredentialArgument,
    grace: Annotated[
        int, typer.Option("--grace", min=0, metavar="SECONDS", help="The old one ends so much later at most.")
    ] = 0,
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Issue a credential with the same actions and queues, and end the old one.

    Subscriptions stay with the old credential; the new one is another owner. The answer is one JSON object in both
    forms; the token in it is shown this once.
    """
    del as_json
    return _show_once(
        asyncio.run(
            changed(
                dsn,
                lambda database: administration.rotate_credential(
                    database, credential_id=credential, grace_seconds=grace
                ),
            )
        )
    )


@app.command("revoke")
def revoke(credential: CredentialArgument, dsn: DsnOption = None, as_json: JsonOption = False) -> ExitCode:
    """End a credential at once: what starts after this is refused, also on connections that are open."""
    members = asyncio.run(
        changed(dsn, lambda database: administration.revoke_credential(database, credential_id=credential))
    )
    Output(as_json=as_json).emit(members, f"{credential} is revoked since {members['revoked_at']}")
    return ExitCode.DONE


def _show_once(members: dict[str, object]) -> ExitCode:
    """The one time that a token is seen."""
    Output(as_json=True).emit(members)
    return ExitCode.DONE
