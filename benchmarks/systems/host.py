"""The process of one system: reads requests as lines of JSON, answers each with one line.

`python -m benchmarks.systems.host MODULE CLASS [ARGUMENT]`. Requests: `{"call": NAME, …}`; answers: `{"result": …}` or
`{"error": …}`. What a library prints goes to standard error, so that answers stay alone on standard output.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import platform
import resource
import sys
import time
from dataclasses import asdict
from typing import Any, TextIO

from benchmarks.systems.system import System


def main() -> None:
    """Serve one system until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _ = os.dup2(2, 1)
    logging.disable(logging.WARNING)
    _, module, name, *arguments = sys.argv
    system: System = getattr(importlib.import_module(module), name)(*arguments)
    asyncio.run(_serve(system, answers))


async def _serve(system: System, answers: TextIO) -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        request: dict[str, Any] = json.loads(line)
        try:
            answer = {"result": await _answer(system, request.pop("call"), request)}
        except Exception as error:  # noqa: BLE001 - a library may raise anything; the report shows it
            answer = {"error": f"{type(error).__name__}: {error}"[:2_000]}
        _ = answers.write(json.dumps(answer) + "\n")
        answers.flush()
    await system.close()


async def _answer(system: System, call: str, request: dict[str, Any]) -> object:
    match call:
        case "setup":
            await system.setup(request["dsn"], install=request["install"])
            versions = {"python": platform.python_version()} | system.versions()
            return {"versions": versions, "settings": system.settings}
        case "append":
            return await system.append(request["count"], request["batch"])
        case "drain":
            before = _cpu_seconds()
            drained = asdict(await system.drain(request["count"], shared=request["shared"]))
            return drained | {"cpu": _cpu_seconds() - before}
        case "latency":
            return await system.latency(request["count"], request["per_second"])
        case "clear":
            return await system.clear()
        case _:
            message = f"unknown call {call!r} at {time.monotonic()}"
            raise ValueError(message)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
