"""The two ways to carry out a call, and the classes that every HTTP client of the SDK is made of.

An operation is a function that makes a Call; `operation` and `async_operation` turn it into a method with the same
name, parameters and documentation. So both clients have the same methods, because they have the same functions.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, cast

import httpx

from orbit.sdk.addresses import Access
from orbit.sdk.requests import RETRIES_MAX, Call, client_options, exchange, request_options
from orbit.sdk.values import Page
from orbit.sdk.waiting import Backoff

ParametersT = ParamSpec("ParametersT")
ValueT = TypeVar("ValueT")


class AsyncHttpClient:
    """Sends calls with `httpx.AsyncClient`."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: float = 10.0,
        max_retries: int = RETRIES_MAX,
    ) -> None:
        self._http = httpx.AsyncClient(**client_options(Access.of(base_url, token), timeout))
        self._retries_max = max_retries
        self._pause: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def send(self, call: Call[ValueT]) -> ValueT:
        """Carry out a call, repeated as SDK-04 says. Raises OrbitApiError or Unreachable."""
        steps = exchange(call, self._retries_max, Backoff())
        outcome: httpx.Response | Exception | None = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = None
                if not isinstance(step, Call):
                    await self._pause(step)
                    continue
                try:
                    outcome = await self._http.request(**request_options(step))
                except httpx.TransportError as error:
                    outcome = error
        except StopIteration as end:
            return end.value

    async def pages(
        self,
        make: Callable[..., Call[Page[ValueT]]],
        *args: str,
        **filters: Any,
    ) -> AsyncIterator[ValueT]:
        """Every item of a list, one page after the other, from the cursor in `filters` on."""
        more = True
        while more:
            page = await self.send(make(*args, **filters))
            for item in page.items:
                yield item
            filters["cursor"] = page.next_cursor
            more = page.next_cursor is not None


class HttpClient:
    """Sends calls with `httpx.Client`."""

    def __init__(self, base_url: str, token: str, *, timeout: float = 10.0, max_retries: int = RETRIES_MAX) -> None:
        self._http = httpx.Client(**client_options(Access.of(base_url, token), timeout))
        self._retries_max = max_retries
        self._pause: Callable[[float], None] = time.sleep

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, call: Call[ValueT]) -> ValueT:
        """As `AsyncHttpClient.send`."""
        steps = exchange(call, self._retries_max, Backoff())
        outcome: httpx.Response | Exception | None = None
        try:
            while True:
                step = steps.send(outcome)
                outcome = None
                if not isinstance(step, Call):
                    self._pause(step)
                    continue
                try:
                    outcome = self._http.request(**request_options(step))
                except httpx.TransportError as error:
                    outcome = error
        except StopIteration as end:
            return end.value

    def pages(
        self,
        make: Callable[..., Call[Page[ValueT]]],
        *args: str,
        **filters: Any,
    ) -> Iterator[ValueT]:
        """As `AsyncHttpClient.pages`."""
        more = True
        while more:
            page = self.send(make(*args, **filters))
            yield from page.items
            filters["cursor"] = page.next_cursor
            more = page.next_cursor is not None


def operation(
    make: Callable[ParametersT, Call[ValueT]],
) -> Callable[Concatenate[HttpClient, ParametersT], ValueT]:
    """The method of the synchronous client that carries out what `make` describes."""

    @functools.wraps(make)
    def method(self: HttpClient, *args: ParametersT.args, **kwargs: ParametersT.kwargs) -> ValueT:
        return self.send(make(*args, **kwargs))

    return _signed(method, make)


def async_operation(
    make: Callable[ParametersT, Call[ValueT]],
) -> Callable[Concatenate[AsyncHttpClient, ParametersT], Coroutine[Any, Any, ValueT]]:
    """As `operation`, a coroutine function of the asynchronous client."""

    @functools.wraps(make)
    async def method(self: AsyncHttpClient, *args: ParametersT.args, **kwargs: ParametersT.kwargs) -> ValueT:
        return await self.send(make(*args, **kwargs))

    return _signed(method, make)


_SELF: Final = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def _signed(method: MethodT, make: Callable[..., Any]) -> MethodT:
    """Show the operation's parameters in `help` and in editors."""
    signature = inspect.signature(make)
    cast("Any", method).__signature__ = signature.replace(
        parameters=[_SELF, *signature.parameters.values()],
        return_annotation=str(signature.return_annotation).removeprefix("Call[").removesuffix("]"),
    )
    return method
