"""Where the owners meet: each part is imported by the process that needs it, and by no other one.

The modules of an owner are found by their names, so that a process loads its own owner's code alone.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from oceanway.installation.layout import OWNERS, Database
from seapost.model.delivery_set import ProjectionTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from oceanway.reads.client import Reader
    from oceanway.reads.server import Serving
    from oceanway.works.loop import Step
    from seapost.contracts.events import Event
    from seapost.contracts.receipt_registry import ReceiptRegistry
    from seapost.database.installer import SqlTree
    from seapost.database.pool import SyncPool
    from seapost.inbox.inbox import Inbox
    from seapost.outbox.application import Application


def owner_tree(owner: str) -> SqlTree:
    """The schema of one owner."""
    made: Callable[[], SqlTree] = _attribute(f"oceanway.{owner}.schema", f"{owner}_tree")
    return made()


def trees_of(database: Database) -> list[SqlTree]:
    """The schemas of the owners in one database, in the order in which they are made."""
    return [owner_tree(owner) for owner in OWNERS[database]]


def release() -> Application:
    """The routes of this release: what all five databases activate."""
    made: Callable[[], Application] = _attribute("oceanway.contracts.release", "application")
    return made()


def projections_of(owners: Sequence[str], application: Application) -> list[ProjectionTarget]:
    """The projections that these owners' databases apply, as the release names them."""
    if "operations" not in owners:
        return []
    targets = [member.projection_target for member in application]
    wanted = {(one.projection_name, one.projection_version) for one in targets if one.state == "required"}
    return [ProjectionTarget(name, version) for name, version in sorted(wanted)]


def receipts() -> ReceiptRegistry:
    """The receipt types that an acknowledgement may name."""
    found: ReceiptRegistry = _attribute("oceanway.contracts.receipts.registry", "RECEIPTS")
    return found


def events_of(database: Database) -> list[type[Event]]:
    """The events that the owners of a database write."""
    every: Sequence[type[Event]] = _attribute("oceanway.contracts.events", "EVENTS")
    return [event for event in every if event.event_producer == database]


CONSUMERS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "metering": ("oceanway.metering.consumer", "build_inbox"),
        "billing": ("oceanway.billing.consumers", "build_inboxes"),
        "operations": ("oceanway.operations.projector", "build_projection"),
    }
)
"""What builds the consumers of an owner from a reader."""


def inboxes_of(owner: str, reader: Reader) -> list[Inbox]:
    """The inboxes of an owner, those of its projections included; the others consume nothing."""
    if owner not in CONSUMERS:
        return []
    from seapost.inbox.inbox import Inbox  # noqa: PLC0415 - owners without consumers need none
    from seapost.projections.projection import Projection  # noqa: PLC0415 - as above

    built: Projection | Inbox | Sequence[Inbox] = _attribute(*CONSUMERS[owner])(reader)
    match built:
        case Projection():
            return [built.inbox]
        case Inbox():
            return [built]
        case _:
            return list(built)


def register_reads(serving: Serving, pool: SyncPool) -> None:
    """Add every read of an owner: its modules `reads…` each register theirs."""
    package = import_module(f"oceanway.{serving.owner}")
    for found in pkgutil.iter_modules(package.__path__):
        if found.name.startswith("reads"):
            register: Callable[[Serving, SyncPool], None] | None
            register = getattr(import_module(f"{package.__name__}.{found.name}"), "register", None)
            if register is not None:
                register(serving, pool)


def steps_of(loop: str, pool: SyncPool, reader: Reader, *, lease: timedelta) -> list[tuple[str, Step]]:
    """The steps of a work process, each with the name of its loop; `lease` is how long a work is held."""
    if loop == "metering":
        settings = _attribute("oceanway.metering.worker", "WorkerSettings")(lease=lease)
        runners = _attribute("oceanway.metering.worker", "build_runners")(pool, reader, settings)
    else:
        module = f"oceanway.billing.{loop.replace('-', '_')}.worker"
        pace = _attribute(module, "Pace")(lease=lease)
        runners = [_attribute(module, "build_runner")(pool, reader, pace=pace)]
    return [(f"{loop}-{number}", runner.step) for number, runner in enumerate(runners, start=1)]


def _attribute(module: str, name: str) -> Any:  # noqa: ANN401 - the caller knows what stands there
    return getattr(import_module(module), name)
