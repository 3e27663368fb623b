"""`orbit serve`: HTTP and the event connection over one database."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from orbit.cli.exit_codes import ExitCode
from orbit.cli.extras import require
from orbit.cli.options import DsnOption, JsonOption, dsn_of
from orbit.tasks.fence import CommitMode
from seapost.cli.output import Output
from seapost.cli.signals import stop_orders
from seapost.telemetry import logging
from seapost.telemetry.libraries import adopt_library_logs

POOL_SIZE_DEFAULT = 8


def serve(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port; 0 takes a free one.")] = 8080,
    commit: Annotated[
        CommitMode,
        typer.Option(
            "--commit",
            help="How results reach the disk before their receipts go out: fenced, many by one flush, or plain, each "
            "by its own.",
        ),
    ] = CommitMode.PLAIN,
    pool_size: Annotated[
        int, typer.Option("--pool-size", min=1, max=1000, help="Most connections to the database.")
    ] = POOL_SIZE_DEFAULT,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="Role that each session takes on, e.g. orbit_server.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="Browser origin that may open the event connection, e.g. https://a.example; may be repeated.",
        ),
    ] = None,
    access_log: Annotated[bool, typer.Option("--access-log/--no-access-log", help="One record per request.")] = True,
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Serve until told to stop; the database need not be reachable yet.

    The first SIGTERM or SIGINT stops in order: no new request, claim or connection, what runs is finished, consumers
    are told to come back elsewhere. After 10 seconds, or at a second signal, what is left is cut; leases lapse by
    themselves, and nothing is half done. The exit code is 0. Logs are JSON on standard error.
    """
    address = dsn_of(dsn)
    require("serve", "server", "fastapi", "uvicorn", "websockets")
    from orbit.server.run import OrbitServer, ServerSettings  # noqa: PLC0415 - needs the extra `server`

    logging.configure("info")
    adopt_library_logs()
    settings = ServerSettings(
        dsn=address,
        host=host,
        port=port,
        pool_size=pool_size,
        role=role,
        commit_mode=commit,
        access_log=access_log,
        allowed_origins=tuple(allow_origin or ()),
    )

    async def run() -> str:
        server = OrbitServer(settings)
        with stop_orders() as orders:
            orders.passed_to(server.stop)
            await server.run()
        return server.address

    served = asyncio.run(run())
    Output(as_json=as_json).emit({"served": served}, "stopped")
    return ExitCode.DONE
