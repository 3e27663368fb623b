"""The processes: two `seapost dispatch`, two `seapost serve`, one producer; how each is started and when it is up.

They are the commands of the command line with settings in files and variables, as anybody would run them; nothing of
Seapost is called from inside the demo to make them work.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from examples.flights.databases import SOURCE, Databases
from examples.flights.events import MILEAGE, PUNCTUALITY
from examples.flights.producer import ProducerSettings
from examples.flights.settings import BATCH_SIZE, CALL_SECONDS_MAX, LEASE_SECONDS
from examples.flights.supervisor import DemoFailed, Patience, Supervisor

DISPATCHERS: Final = ("dispatcher-1", "dispatcher-2")
CONSUMERS: Final = (PUNCTUALITY, MILEAGE)
PRODUCER: Final = "producer"
HOST: Final = "127.0.0.1"
START_SECONDS_MAX: Final = 60.0
CONNECT_SECONDS_MAX: Final = 0.2

_OWNER: Final = re.compile(r'"event": "dispatcher.started".*"owner": "([^"]+)"')

_DISPATCH_FILE: Final = """\
[dispatcher]
recover_every_seconds = 0.25
poll_seconds = [0.005, 0.05, 0.2]
drain_seconds = 5

[workload]
private_key_file = "signing.pem"
"""
_DESTINATION: Final = """
[destinations.{name}]
url = "http://{host}:{port}/seapost/v1/deliveries"
allow_networks = ["127.0.0.0/8"]
batch_size = {batch_size}
lanes = 1
lease_seconds = {lease_seconds}
timeout_seconds = {call_seconds_max}
backoff_min_seconds = 0.05
backoff_base_seconds = 0.1
backoff_max_seconds = 1
breaker_open_seconds = 0.25
"""
_SERVE_FILE: Final = """\
[receiver]
host = "{host}"
port = {port}
public_key_files = ["verifying.pem"]
drain_seconds = 5
"""


class Workers:
    """The commands of one run, with their files in a folder of their own.

    Args:
        folder: where settings and keys are written, for this user only.
    """

    def __init__(self, folder: Path, databases: Databases) -> None:
        self._folder = folder
        self._databases = databases
        names: tuple[str, ...] = (*CONSUMERS, *DISPATCHERS)
        self.ports: dict[str, int] = dict(zip(names, _free_ports(len(names)), strict=True))
        _write_keys(folder)
        destinations = [
            _DESTINATION.format(
                name=name,
                host=HOST,
                port=self.ports[name],
                batch_size=BATCH_SIZE,
                lease_seconds=LEASE_SECONDS,
                call_seconds_max=CALL_SECONDS_MAX,
            )
            for name in CONSUMERS
        ]
        _ = (folder / "dispatch.toml").write_text(_DISPATCH_FILE + "".join(destinations), encoding="utf-8")
        for name in CONSUMERS:
            text = _SERVE_FILE.format(host=HOST, port=self.ports[name])
            _ = (folder / f"{name}.toml").write_text(text, encoding="utf-8")

    def start(self, supervisor: Supervisor) -> None:
        """Start consumers and dispatchers, and return when all of them are up.

        Raises:
            DemoFailed: one does not come up; the message holds the end of its log.
        """
        for name in CONSUMERS:
            _ = supervisor.start(
                name,
                [*_seapost(), "serve", f"examples.flights.consumers:{name}"],
                {
                    "SEAPOST_CONFIG": str(self._folder / f"{name}.toml"),
                    "SEAPOST_CONSUMER_DSN": self._databases.dsns[name],
                    "SEAPOST_CONSUMER_ROLE": "seapost_consumer",
                },
            )
        for name in DISPATCHERS:
            _ = supervisor.start(
                name,
                [*_seapost(), "dispatch"],
                {
                    "SEAPOST_CONFIG": str(self._folder / "dispatch.toml"),
                    "SEAPOST_DATABASE_DSN": self._databases.source,
                    "SEAPOST_DATABASE_ROLE": "seapost_dispatcher",
                    "SEAPOST_MONITOR_PORT": str(self.ports[name]),
                },
            )
        patience = Patience(START_SECONDS_MAX)
        while not all(self.is_up(name) for name in self.ports):
            supervisor.tend()
            if patience.is_over:
                waiting = ", ".join(name for name in self.ports if not self.is_up(name))
                raise DemoFailed(f"after {START_SECONDS_MAX:.0f} s these do not answer: {waiting}")
            patience.pause()

    def start_producer(self, supervisor: Supervisor, settings: ProducerSettings) -> None:
        """Start appending."""
        dsn = self._databases.as_role(SOURCE, "producer")
        command = [sys.executable, "-m", "examples.flights.producer"]
        _ = supervisor.start(PRODUCER, command, settings.to_environment(dsn), restarts=False)

    def name_in_facts(self, name: str) -> str:
        """A dispatcher's owner id, fresh with each start, as its log last told it; a consumer's own name."""
        if name in CONSUMERS:
            return name
        log = (self._folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        return next((owner[-1] for owner in [_OWNER.findall(log)] if owner), name)

    def is_up(self, name: str) -> bool:
        """Whether a process answers on its port."""
        try:
            with socket.create_connection((HOST, self.ports[name]), CONNECT_SECONDS_MAX):
                return True
        except OSError:
            return False


def _seapost() -> Sequence[str]:
    """The program that was installed beside the interpreter that runs us."""
    return (str(Path(sys.executable).with_name("seapost")),)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody uses now, all different: each is held until the last is found."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _write_keys(folder: Path) -> None:
    """The key that signs the dispatchers' tokens, and the one that the consumers check them with."""
    key = Ed25519PrivateKey.generate()
    private = folder / "signing.pem"
    private.touch(mode=0o600)
    _ = private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    _ = (folder / "verifying.pem").write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
