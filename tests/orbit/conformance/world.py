"""What exchanges need of a server: its address, three tokens, a queue; everything else is made over HTTP."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from tests.orbit.conformance.client import EventClient, event_client

CLAIMED_MAX: Final = 16


@dataclass(slots=True)
class World:
    """One server.

    Attributes:
        url: base address, `http://…` or `https://…`.
        token: of a credential with every action in the queue.
        foreign_token: as `token`, another credential of the same namespace.
        idle_token: of a credential without `events:consume`.
        queue: a queue that only this run uses.
        shared: what worlds of one run share.
    """

    url: str
    token: str
    foreign_token: str
    idle_token: str
    queue: str
    http: httpx.AsyncClient
    shared: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def endpoint(self) -> str:
        """The address of the event connection."""
        return self.url.replace("http", "ws", 1) + "/v1/events/connect"

    async def call(self, method: str, path: str, body: object = None, *, token: str | None = None) -> Any:  # noqa: ANN401 - JSON
        """One request; gives the body of the answer, which must be a success."""
        headers = {"Authorization": f"Bearer {token or self.token}", "Idempotency-Key": secrets.token_hex(8)}
        answer = await self.http.request(method, self.url + path, json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    async def subscription(self, *, token: str | None = None, **members: object) -> str:
        """A new subscription from now on; gives its id."""
        body = {"name": f"c-{secrets.token_hex(8)}", "queue": self.queue} | members
        return (await self.call("POST", "/v1/event-subscriptions", body, token=token))["subscription_id"]

    async def state(self, subscription_id: str) -> dict[str, Any]:
        """The subscription as HTTP shows it."""
        return await self.call("GET", f"/v1/event-subscriptions/{subscription_id}")

    async def change(self, subscription_id: str, operation: str) -> None:
        """Pause or resume."""
        revision = (await self.state(subscription_id))["revision"]
        path = f"/v1/event-subscriptions/{subscription_id}/{operation}"
        await self.call("POST", path, {"expected_revision": revision})

    async def results(self, count: int = 1, *, result: str = '{"n":1}', outcome: str = "succeeded") -> list[int]:
        """Confirm so many results of new tasks; gives their sequences. `result` is the exact text."""
        for start in range(0, count, CLAIMED_MAX):
            wanted = range(start, min(count, start + CLAIMED_MAX))
            submit = {"queue": self.queue, "input": None}
            await asyncio.gather(*(self.call("POST", "/v1/tasks", submit) for _ in wanted))
        sequences: list[int] = []
        while len(sequences) < count:
            claim = {"queue": self.queue, "worker_id": "w-1", "max": min(CLAIMED_MAX, count - len(sequences))}
            items = (await self.call("POST", "/v1/worker/claims", claim))["items"]
            sequences += await asyncio.gather(*(self._confirm(item, outcome, result) for item in items))
        return sorted(sequences)

    async def _confirm(self, item: dict[str, Any], outcome: str, result: str) -> int:
        answer = await self.http.post(
            f"{self.url}/v1/worker/attempts/{item['attempt_id']}/result",
            content=f'{{"lease_secret":"{item["lease_secret"]}","outcome":"{outcome}","result":{result}}}',
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        assert answer.is_success, answer.text
        return answer.json()["sequence"]

    async def any_subscription(self) -> str:
        """A subscription for exchanges that care for none: a namespace has room for 64 only."""
        if "any" not in self.shared:
            self.shared["any"] = await self.subscription()
        return self.shared["any"]

    def connect(self, token: str | None = None, **headers: str) -> AbstractAsyncContextManager[EventClient]:
        """A connection that has said nothing yet."""
        return event_client(self.endpoint, token or self.token, **headers)

    @asynccontextmanager
    async def greeted(self, subscription_id: str | None = None, capacity: int = 32) -> AsyncGenerator[EventClient]:
        """A connection that serves a subscription, or a new one."""
        async with self.connect() as client:
            await client.greet(subscription_id or await self.subscription(), capacity)
            yield client


@asynccontextmanager
async def world(
    url: str, *, token: str, foreign_token: str, idle_token: str, queue: str, shared: dict[str, str] | None = None
) -> AsyncGenerator[World]:
    """Open what the exchanges use."""
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        yield World(url.rstrip("/"), token, foreign_token, idle_token, queue, http, {} if shared is None else shared)
