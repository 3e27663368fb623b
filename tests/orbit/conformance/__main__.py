"""Runs the conformance suite against a server: `python -m tests.orbit.conformance --help`."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from typing import Annotated

import typer

from tests.orbit.conformance import exchanges
from tests.orbit.conformance.registry import EXCHANGES
from tests.orbit.conformance.world import world

__all__ = ["exchanges", "main"]


def main(
    url: Annotated[str, typer.Option(help="base address of the server")] = "http://127.0.0.1:8080",
    queue: Annotated[str, typer.Option(help="a queue that only this run uses")] = "conformance",
    match: Annotated[str, typer.Option(help="only exchanges whose name matches this expression")] = "",
) -> None:
    """Play every exchange and report it; exit code 1 when one fails.

    The tokens stand in the environment: ORBIT_TOKEN has every action in the queue, ORBIT_FOREIGN_TOKEN is as it, of
    another credential of the namespace, ORBIT_IDLE_TOKEN has no `events:consume`.
    """
    tokens = [os.environ[name] for name in ("ORBIT_TOKEN", "ORBIT_FOREIGN_TOKEN", "ORBIT_IDLE_TOKEN")]
    failed = asyncio.run(_play(url, tokens, queue, match))
    sys.exit(1 if failed else 0)


async def _play(url: str, tokens: list[str], queue: str, match: str) -> int:
    failed = 0
    chosen = [exchange for exchange in EXCHANGES.values() if re.search(match, exchange.name)]
    token, foreign_token, idle_token = tokens
    async with world(url, token=token, foreign_token=foreign_token, idle_token=idle_token, queue=queue) as there:
        for exchange in chosen:
            started = time.perf_counter()
            try:
                await exchange.play(there)
            except Exception as failure:  # noqa: BLE001 - the report goes on
                failed += 1
                verdict = f"FAILED  {type(failure).__name__}: {failure}"
            else:
                verdict = "passed"
            took = (time.perf_counter() - started) * 1000
            typer.echo(f"{verdict:8} {took:7.0f} ms  {exchange.name} ({', '.join(exchange.requirements)})")
    typer.echo(f"{len(chosen) - failed} of {len(chosen)} exchanges passed")
    return failed


if __name__ == "__main__":
    typer.run(main)
