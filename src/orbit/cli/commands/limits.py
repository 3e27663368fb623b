"""`orbit queues` and `orbit quotas`: where tasks may wait, and how many."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from orbit.access import administration
from orbit.cli.databases import changed
from orbit.cli.exit_codes import ExitCode
from orbit.cli.options import ApplicationOption, DsnOption, JsonOption, NamespaceOption, SomeNamespaceOption
from orbit.model.limits import OPEN_TASKS_MAX
from seapost.cli.output import Fields, Output

queues = typer.Typer(help="Make queues.", no_args_is_help=True)
quotas = typer.Typer(help="Limit the open tasks of applications.", no_args_is_help=True)


@queues.callback()
def _queues() -> None:
    """Make queues."""


@quotas.callback()
def _quotas() -> None:
    """Limit the open tasks of applications."""


@queues.command("create")
def create(
    namespace: NamespaceOption,
    name: Annotated[str, typer.Option("--name", metavar="Q", help="Name of the queue, unique in the namespace.")],
    max_running: Annotated[
        int | None, typer.Option("--max-running", min=1, help="Most attempts at the same time; by default 100.")
    ] = None,
    lease_seconds: Annotated[
        int | None, typer.Option("--lease-seconds", min=5, max=3600, help="Lease of an attempt; by default 60.")
    ] = None,
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Make a queue in an existing namespace."""
    members = asyncio.run(
        changed(
            dsn,
            lambda database: administration.create_queue(
                database, namespace=namespace, name=name, max_running=max_running, lease_seconds=lease_seconds
            ),
        )
    )
    Output(as_json=as_json).emit(members, Fields(members))
    return ExitCode.DONE


@quotas.command("set")
def set_quota(
    application: ApplicationOption,
    max_open_tasks: Annotated[
        int | None, typer.Option("--max-open-tasks", min=1, max=OPEN_TASKS_MAX, help="Most open tasks.")
    ] = None,
    no_limit: Annotated[bool, typer.Option("--no-limit", help="Take the limit away.")] = False,
    namespace: SomeNamespaceOption = None,
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Set how many tasks of an application may be queued or running at a time."""
    if (max_open_tasks is None) is not no_limit:
        raise typer.BadParameter("give either --max-open-tasks or --no-limit")
    members = asyncio.run(
        changed(
            dsn,
            lambda database: administration.set_quota(
                database, namespace=namespace, application=application, max_open_tasks=max_open_tasks
            ),
        )
    )
    Output(as_json=as_json).emit(members, Fields(members))
    return ExitCode.DONE
