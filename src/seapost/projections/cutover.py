"""Switches readers of a projection to another version: a durable row, short steps, one moment of the switch.

```python
Cutover(orders_v2, dsn, delivery_set_version="8", definition_digest=digest, actor="maria").run()
```

| Step | Phase after it | Killed before the next one |
|---|---|---|
| begin: pause the shadow's claim | `draining_shadow` | run again, or give up |
| freeze: drained; one snapshot fixes the candidate | `catching_up` | the same candidate is found again |
| catch up to the border | | goes on where it was |
| stop the active version, drained | `draining_active` | run again, or give up: it applies again |
| prove; switch pointer, states and delivery set at once | `switched` | the switch has happened |
| other producers activate; finish | (history) | goes on |

Authority: the row of the switch, locked by every step; a runner that is killed is started again with the same
arguments. Until the switch nothing has changed for readers, and `abandon` leaves everything as it was. Going back is a
switch to the version that drains, which has been fed all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeVar

from psycopg import errors

from seapost.database.pool import open_sync_pool
from seapost.model.errors import NotReady, WrongPhase
from seapost.projections.completeness import Proof, prove
from seapost.projections.feed import Feed
from seapost.store import projection_cutover as store

if TYPE_CHECKING:
    from uuid import UUID

    from psycopg import Connection

    from seapost.database.pool import SyncPool
    from seapost.projections.projection import Projection

LOCK_TIMEOUT: Final = "2s"
ATTEMPTS_MAX: Final = 20
PAUSE_SECONDS: Final = 0.05
CATCH_UP_PASSES_MAX: Final = 1_000


_LOCK_TIMEOUT: Final = "select pg_catalog.set_config('lock_timeout', %s, true)"
ResultT = TypeVar("ResultT")


class Phase(StrEnum):
    """Where a switch stands, as its row says."""

    DRAINING_SHADOW = "draining_shadow"
    CATCHING_UP = "catching_up"
    DRAINING_ACTIVE = "draining_active"
    SWITCHED = "switched"


@dataclass(frozen=True, slots=True)
class CutoverSettings:
    """How a switch works.

    Attributes:
        rest_max: most events that the shadow may lack when its candidate is frozen.
        rollback: how long the former version is fed, so that one can go back.
        producers: of other databases, who activate the delivery set afterwards.
        consumer_role, operator_role, verifier_role: taken on by its sessions, where the login has more rights.
    """

    rest_max: int = 10_000
    rollback: timedelta = timedelta(days=7)
    producers: Sequence[str] = ()
    consumer_role: str | None = None
    operator_role: str | None = None
    verifier_role: str | None = None


class Cutover:
    """One switch of a projection.

    Args:
        projection: the version to switch to, a shadow or one that drains.
        dsn: of the consumer's database; as a login that is consumer, operator and verifier.
        delivery_set_version, definition_digest: what becomes active with the switch; registered in every database.
    """

    def __init__(
        self,
        projection: Projection,
        dsn: str,
        *,
        delivery_set_version: str,
        definition_digest: bytes,
        actor: str,
        settings: CutoverSettings | None = None,
    ) -> None:
        self._projection = projection
        self._dsn = dsn
        self._delivery_set_version = delivery_set_version
        self._definition_digest = definition_digest
        self._actor = actor
        self._settings = CutoverSettings() if settings is None else settings
        self._stop = Event()

    def run(self, tell: Callable[[str], None] | None = None) -> None:
        """Take every step that is left, up to the switch, and end it where nobody else is awaited.

        Raises:
            NotReady: the version, its candidate or its proof is not good enough; the switch stays where it stands.
            WrongPhase: another switch is under way.
            psycopg.errors.LockNotAvailable: a transaction does not end; nothing was changed by that step.
        """
        _ = self._projection.inbox.close()
        say = _say_nothing if tell is None else tell
        settings = self._settings
        with (
            open_sync_pool(self._dsn, part="cutover", size_max=2, role=settings.operator_role) as operator,
            open_sync_pool(self._dsn, part="cutover", size_max=2, role=settings.consumer_role) as consumer,
        ):
            token = self._step(operator, self._begin)
            phase = self._phase(operator)
            if phase in {Phase.DRAINING_SHADOW, Phase.CATCHING_UP}:
                frozen = self._step(operator, lambda c: self._freeze(c, token))
                say(f"frozen; {frozen.rest} events to catch up")
                self._catch_up(consumer, operator, token, frozen)
                say("caught up; the active version is stopped")
            if phase is not Phase.SWITCHED:
                proof = self._prove()
                say(f"proved: {proof.result}")
                _ = self._step(operator, lambda c: self._switch(c, token, proof))
                say(f"switched to version {self._projection.target.version}")
            self._finish(operator, token)

    def abandon(self) -> None:
        """Give up a switch that has not switched: everything is as before.

        Raises:
            WrongPhase: it has switched, or there is none.
        """
        role = self._settings.operator_role
        with (
            open_sync_pool(self._dsn, part="cutover", size_max=1, role=role) as pool,
            pool.connection() as connection,
        ):
            found = store.under_way(connection, name=self._projection.target.name)
            if found is None:
                raise WrongPhase("There is no switch of this projection.")
            store.abandon(connection, name=self._projection.target.name, token=found.token, actor=self._actor)

    def _begin(self, connection: Connection[Any]) -> UUID:
        return store.begin(
            connection,
            target=self._projection.target,
            delivery_set_version=self._delivery_set_version,
            definition_digest=self._definition_digest,
            producers=self._settings.producers,
            actor=self._actor,
        )

    def _phase(self, pool: SyncPool) -> Phase:
        with pool.connection() as connection:
            found = store.under_way(connection, name=self._projection.target.name)
        if found is None:
            raise WrongPhase("The switch was ended by somebody else.")
        return Phase(found.phase)

    def _freeze(self, connection: Connection[Any], token: UUID) -> store.Frozen:
        return store.freeze(
            connection, name=self._projection.target.name, token=token, rest_max=self._settings.rest_max
        )

    def _catch_up(self, consumer: SyncPool, operator: SyncPool, token: UUID, frozen: store.Frozen) -> None:
        """Feed what is inside the border until the active version can be stopped."""
        feed = Feed(self._projection, consumer, frozen.claim_token, is_bounded=True)
        for _ in range(CATCH_UP_PASSES_MAX):
            _ = feed.catch_up()
            try:
                self._step(operator, lambda c: store.stop_active(c, name=self._projection.target.name, token=token))
            except NotReady:
                _ = self._stop.wait(PAUSE_SECONDS)  # a delivery brings the rest, or a mutation asked to wait
            else:
                return
        raise NotReady("The version does not reach its border.")

    def _prove(self) -> Proof:
        role = self._settings.verifier_role
        with (
            open_sync_pool(self._dsn, part="cutover", size_max=1, role=role) as pool,
            pool.connection() as connection,
        ):
            return prove(connection, self._projection)

    def _switch(self, connection: Connection[Any], token: UUID, proof: Proof) -> bytes:
        return store.switch(
            connection,
            name=self._projection.target.name,
            token=token,
            manifest_digest=proof.digest,
            rollback=self._settings.rollback,
            actor=self._actor,
        )

    def _finish(self, pool: SyncPool, token: UUID) -> None:
        """End it, unless other producers are awaited."""
        with pool.connection() as connection:
            found = store.under_way(connection, name=self._projection.target.name)
            if found is not None and set(found.producers) <= set(found.activated):
                store.finish(connection, name=self._projection.target.name, token=token, actor=self._actor)

    def _step(self, pool: SyncPool, act: Callable[[Connection[Any]], ResultT]) -> ResultT:
        """One step in a transaction of its own that waits for locks a bounded time, tried again a few times."""
        for attempt in range(ATTEMPTS_MAX):
            try:
                with pool.connection() as connection, connection.transaction():
                    _ = connection.execute(_LOCK_TIMEOUT, (LOCK_TIMEOUT,))
                    return act(connection)
            except (errors.LockNotAvailable, errors.DeadlockDetected):
                if attempt == ATTEMPTS_MAX - 1:
                    raise
                _ = self._stop.wait(PAUSE_SECONDS)
        raise AssertionError  # the last attempt returns or raises


def _say_nothing(_: str) -> None:
    """For who does not want to be told."""
