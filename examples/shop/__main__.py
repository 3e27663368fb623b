"""`python -m examples.shop`: both services, the dispatcher between them, some orders, and their invoices.

Everything runs as it would in production, each in a process of its own: two services under uvicorn, `seapost dispatch`,
and a PostgreSQL, which `seapost init` takes out of the wheel.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

import httpx

from examples.shop import billing, orders
from seapost.database.embedded import EmbeddedServer

ORDERS: Final = 20
CANCELLED: Final = 5
SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.1
SEAPOST: Final = str(Path(sys.executable).with_name("seapost"))
APPLICATION: Final = "examples.shop.contracts:application"

DESTINATION: Final = """
[destinations.billing]
url = "http://127.0.0.1:{port}{mount}/seapost/v1/deliveries"
allow_networks = ["127.0.0.0/8"]
"""


def main() -> int:
    """Place orders, cancel some, and compare the invoices; 0 when every one is right."""
    with tempfile.TemporaryDirectory(prefix="seapost-shop-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)  # as root, the server runs as a user of its own and must get in
        seapost(folder, "init")
        server = EmbeddedServer(folder / ".seapost" / "postgres")
        server.start()
        stack.callback(server.stop)
        orders_port, billing_port = free_port(), free_port()
        with (folder / "seapost.toml").open("a", encoding="utf-8") as settings:
            settings.write(DESTINATION.format(port=billing_port, mount=billing.MOUNT))
        seapost(folder, "routes", "apply", APPLICATION, "--consumer")
        seapost(folder, "routes", "apply", APPLICATION)

        environment = {
            orders.DSN_VARIABLE: server.dsn("outbox"),
            billing.DSN_VARIABLE: server.dsn("consumer"),
            billing.KEY_VARIABLE: str(folder / ".seapost" / "workload-public.pem"),
        }
        stack.enter_context(service("examples.shop.orders", orders_port, environment))
        stack.enter_context(service("examples.shop.billing", billing_port, environment))
        stack.enter_context(running(folder, [SEAPOST, "dispatch"], {}))
        wrong = trade(f"http://127.0.0.1:{orders_port}", f"http://127.0.0.1:{billing_port}")
    print(f"orders={ORDERS} cancelled={CANCELLED} wrong_invoices={wrong}")
    return int(wrong > 0)


def trade(orders_url: str, billing_url: str) -> int:
    """Be the customers, then the auditor; return how many invoices are wrong."""
    wanted = {f"order-{number}": 100 + number for number in range(ORDERS)}
    with httpx.Client(base_url=orders_url) as shop, httpx.Client(base_url=billing_url) as office:
        until("the services", lambda: answers(shop) and answers(office))
        for order_id, cents in wanted.items():
            order = {"id": order_id, "customer": "somebody", "cents": cents}
            shop.post("/orders", json=order).raise_for_status()
        for order_id in list(wanted)[:CANCELLED]:
            shop.delete(f"/orders/{order_id}").raise_for_status()
            wanted[order_id] = 0
        until("the invoices", lambda: all(owed(office, order_id) == cents for order_id, cents in wanted.items()))
        return sum(owed(office, order_id) != cents for order_id, cents in wanted.items())


def owed(office: httpx.Client, order_id: str) -> int | None:
    """What billing wants for an order; None while it has not heard of it."""
    answer = office.get(f"/invoices/{order_id}")
    return answer.json()["cents"] if answer.is_success else None


def answers(client: httpx.Client) -> bool:
    """Whether a service listens."""
    try:
        return client.get("/openapi.json").is_success
    except httpx.TransportError:
        return False


def until(what: str, condition: Callable[[], bool]) -> None:
    """Wait for something that other processes do."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            message = f"{what} did not come within {SECONDS_MAX:g} s"
            raise TimeoutError(message)
        time.sleep(POLL_SECONDS)


def seapost(folder: Path, *arguments: str) -> None:
    """Run a command of Seapost's in the folder that holds its settings."""
    command = [SEAPOST, *arguments]
    subprocess.run(command, cwd=folder, env=with_path({}), check=True, stdout=subprocess.DEVNULL)


def service(module: str, port: int, environment: dict[str, str]) -> AbstractContextManager[None]:
    """One of our services under uvicorn."""
    command = [sys.executable, "-m", "uvicorn", f"{module}:from_environment", "--factory", f"--port={port}"]
    return running(Path.cwd(), [*command, "--log-level=warning"], environment)


@contextmanager
def running(folder: Path, command: list[str], environment: dict[str, str]) -> Generator[None]:
    """A process that is ended in order at the end of the block."""
    process = subprocess.Popen(command, cwd=folder, env=with_path(environment), stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(SECONDS_MAX)


def with_path(environment: dict[str, str]) -> dict[str, str]:
    """The environment of a child, which finds this package as we do."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
