"""Claim tasks and confirm their results, with the outcome that the options say.

    ORBIT_TOKEN=… python -m examples.orbit.worker --base-url http://127.0.0.1:8080 --queue billing --submit 20
    … --queue billing --count 20 --outcome failed --effect unknown

| Result wanted | Options, and the task's policy |
|---|---|
| task.succeeded | `--outcome succeeded` |
| task.requeued | `--outcome failed --retryable`, attempts left |
| task.failed | `--outcome failed` |
| task.needs_review | `--outcome failed --effect unknown`, policy `unsafe` |

Each receipt is one line of JSON. A receipt says that the result is in the journal: subscribers will get it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys

from orbit.sdk import AsyncWorker, OrbitSdkError, TaskClaim

PAUSE_SECONDS = 0.2


def main() -> int:
    """Submit what `--submit` says, then work until `--count` tasks are done, or for ever."""
    parser = argparse.ArgumentParser(description="Claim tasks and confirm results.")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--worker-id", default=f"example-{os.getpid()}")
    parser.add_argument("--submit", type=int, default=0, metavar="N", help="first submit N tasks")
    parser.add_argument("--effect-policy", choices=("safe", "unsafe"), default="unsafe", help="of submitted tasks")
    parser.add_argument("--max-attempts", type=int, default=3, help="of submitted tasks")
    parser.add_argument("--count", type=int, metavar="N", help="end after N results; 0 submits only")
    parser.add_argument("--outcome", choices=("succeeded", "failed"), default="succeeded")
    parser.add_argument("--effect", choices=("none", "unknown"), default="none")
    parser.add_argument("--retryable", action="store_true")
    parser.add_argument("--result", metavar="JSON", help="exact text of every result; default: the task's input")
    options = parser.parse_args()
    token = os.environ.get("ORBIT_TOKEN")
    if not token:
        parser.error("ORBIT_TOKEN holds no token")
    try:
        asyncio.run(work(options, token))
    except OrbitSdkError as error:
        print(f"worker: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


async def work(options: argparse.Namespace, token: str) -> None:
    """Submit, then claim and confirm."""
    async with AsyncWorker(options.base_url, token, worker_id=options.worker_id) as worker:
        for number in range(options.submit):
            await worker.submit(
                options.queue,
                {"number": number},
                effect_policy=options.effect_policy,
                max_attempts=options.max_attempts,
            )
        done = 0
        while options.count is None or done < options.count:
            wanted = 16 if options.count is None else min(16, options.count - done)
            claims = await worker.claim(options.queue, max=wanted)
            for claim in claims:
                await confirm(worker, claim, options)
            done += len(claims)
            if not claims:
                await asyncio.sleep(PAUSE_SECONDS)


async def confirm(worker: AsyncWorker, claim: TaskClaim, options: argparse.Namespace) -> None:
    """Say how one task ended; the SDK repeats the same words until the receipt is there."""
    receipt = await worker.confirm(
        claim,
        outcome=options.outcome,
        effect=options.effect,
        retryable=options.retryable,
        result_text=options.result or json.dumps(claim.input),
    )
    print(receipt.model_dump_json(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
