"""HTTP connections that go only where the address policy allows, and say whether the request left.

A thin `httpx` transport over a connection pool of `httpcore` with a network backend of ours. No proxy, no
environment variable and no redirect takes part, so nothing can send the request anywhere else.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, cast

import httpcore
import httpx

from seapost.model.errors import AddressRefused
from seapost.transport.address import AddressPolicy

# Shorter than the keep-alive of common servers (5 seconds), so that we seldom write into a closing connection.
KEEPALIVE_SECONDS: Final = 4.0
CONNECT_SECONDS_MAX: Final = 5.0

SocketOptions = Iterable[tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]]


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Resolves names itself and connects to a checked address only.

    Names are resolved in threads of its own, at most `connections_max`: a name server that hangs for one destination
    must not use up the threads in which those of others are resolved (F23).
    """

    def __init__(self, policy: AddressPolicy, *, connections_max: int = 1) -> None:
        self._policy = policy
        self._resolving = ThreadPoolExecutor(connections_max, "seapost-resolve")
        self._plain = cast("Callable[[], httpcore.AsyncNetworkBackend]", httpcore.AnyIOBackend)()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface of httpcore
        local_address: str | None = None,
        socket_options: SocketOptions | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first of the checked addresses that answers, and check the peer once more."""
        try:
            addresses = await self._policy.resolve(host, port, self._resolving)
        except OSError as error:
            raise httpcore.ConnectError("the destination's name does not resolve") from error
        failure: Exception | None = None
        for address in addresses:
            try:
                stream = await self._plain.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            peer = cast("tuple[Any, ...]", stream.get_extra_info("server_addr"))
            try:
                self._policy.check_address(host, str(peer[0]))
            except AddressRefused:
                await stream.aclose()
                raise
            return stream
        raise failure or httpcore.ConnectError("the destination has no address")

    def close(self) -> None:
        """Resolve nothing more; a question that is still out ends by itself."""
        self._resolving.shutdown(wait=False, cancel_futures=True)


class CheckedTransport(httpx.AsyncBaseTransport):
    """The httpx transport over `CheckedBackend`; raises the exceptions of httpcore and `AddressRefused`."""

    def __init__(
        self, policy: AddressPolicy, *, connections_max: int, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._backend = CheckedBackend(policy, connections_max=connections_max)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl_context,
            max_connections=connections_max,
            max_keepalive_connections=connections_max,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=self._backend,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the response body is still to be read."""
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        stream = cast("AsyncIterator[bytes]", answer.stream)
        return httpx.Response(status_code=answer.status, headers=answer.headers, stream=_Body(stream))

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()
        self._backend.close()


class _Body(httpx.AsyncByteStream):
    """Hands the body through; closing it gives the connection back, or closes it when bytes are left."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        closer = getattr(self._stream, "aclose", None)
        if closer is not None:
            await closer()
