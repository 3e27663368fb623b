r"""Manage subscriptions from the command line: one JSON object per line, made with the management SDK alone.

    ORBIT_TOKEN=… python -m examples.orbit.manage_subscriptions --base-url http://127.0.0.1:8080 create \
        --name billing-results --queue billing --from-sequence 0
    … list | show SUB | pause SUB | resume SUB | deliveries SUB | exhausted SUB | retry SUB DELIVERY --reason … --add 5

Changes name the revision that they were decided on. Without `--revision` this looks it up just before, which is what a
person at a terminal means; a program should pass the revision that it has seen.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable

from orbit.sdk import Delivery, ManagementClient, OrbitApiError, OrbitSdkError, Subscription


def main() -> int:
    """Run one subcommand."""
    options = parse()
    token = os.environ.get("ORBIT_TOKEN")
    if not token:
        print("manage_subscriptions: ORBIT_TOKEN holds no token", file=sys.stderr)
        return 2
    try:
        with ManagementClient(options.base_url, token) as client:
            for answer in answers(client, options):
                print(answer.model_dump_json(), flush=True)
    except OrbitApiError as error:
        print(json.dumps({"code": error.code, "detail": error.detail}), file=sys.stderr)
        return 1
    except OrbitSdkError as error:
        print(f"manage_subscriptions: {error}", file=sys.stderr)
        return 1
    return 0


def answers(client: ManagementClient, options: argparse.Namespace) -> Iterable[Subscription | Delivery]:
    """Do what was asked and yield what the service answers."""
    match options.command:
        case "create":
            yield client.create_subscription(
                name=options.name,
                queue=options.queue,
                types=options.type,
                from_sequence=options.from_sequence,
                max_pending=options.max_pending,
                max_attempts=options.max_attempts,
                idempotency_key=options.key,
            )
        case "list":
            yield from client.iter_subscriptions(status=options.status, queue=options.queue)
        case "show":
            yield client.get_subscription(options.subscription)
        case "pause" | "resume":
            change = client.pause_subscription if options.command == "pause" else client.resume_subscription
            yield change(
                options.subscription,
                expected_revision=options.revision or client.get_subscription(options.subscription).revision,
                reason=options.reason,
                idempotency_key=options.key,
            )
        case "deliveries":
            yield from client.iter_deliveries(options.subscription, states=options.state or ())
        case "exhausted":
            yield from client.iter_deliveries(options.subscription, states=("EXPIRED",))
        case _:
            seen = options.revision or client.get_delivery(options.subscription, options.delivery).revision
            yield client.retry_delivery(
                options.subscription,
                options.delivery,
                expected_revision=seen,
                reason=options.reason,
                additional_attempts=options.add,
                idempotency_key=options.key,
            )


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Manage result subscriptions.")
    parser.add_argument("--base-url", required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    change = argparse.ArgumentParser(add_help=False)
    change.add_argument("--key", help="idempotency key: the same key gives the same answer and one effect")
    named = argparse.ArgumentParser(add_help=False)
    named.add_argument("subscription")
    revised = argparse.ArgumentParser(add_help=False)
    revised.add_argument("--revision", type=int, help="the revision that this was decided on")

    create = commands.add_parser("create", parents=[change])
    create.add_argument("--name", required=True)
    create.add_argument("--queue", required=True)
    create.add_argument("--type", action="append", help="a result type; may be repeated; default all four")
    create.add_argument("--from-sequence", type=int, help="results after this one; default: from now on")
    create.add_argument("--max-pending", type=int)
    create.add_argument("--max-attempts", type=int)
    listing = commands.add_parser("list")
    listing.add_argument("--status", choices=("ACTIVE", "PAUSED"))
    listing.add_argument("--queue")
    commands.add_parser("show", parents=[named])
    for name in ("pause", "resume"):
        commands.add_parser(name, parents=[named, change, revised]).add_argument("--reason")
    deliveries = commands.add_parser("deliveries", parents=[named])
    deliveries.add_argument("--state", action="append", choices=("PENDING", "LEASED", "ACKED", "EXPIRED"))
    commands.add_parser("exhausted", parents=[named])
    retry = commands.add_parser("retry", parents=[named, change, revised])
    retry.add_argument("delivery")
    retry.add_argument("--reason", required=True)
    retry.add_argument("--add", type=int, required=True, metavar="N", help="further attempts, 1 to 100")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
