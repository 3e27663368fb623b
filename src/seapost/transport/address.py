"""Where a transport may connect to: public addresses, and what the operator lists (F86).

Authority: the address actually connected to decides, at every connection. A URL that was harmless when it
was configured may resolve to an internal address today, and a name may resolve to a public address for a
check and to another one for the call; so names are resolved here, every answer is checked, and the
connection goes to exactly the checked address. The name stays in the `Host` field and in TLS.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Self
from urllib.parse import urlsplit

from seapost.model.errors import AddressRefused

SCHEMES: Final = frozenset({"http", "https"})
URL_LENGTH_MAX: Final = 2_000

# Neither space, control character nor backslash: readers of URLs disagree about them.
_PRINTABLE: Final = re.compile(r"[!-\[\]-~]+")

IPAddress = IPv4Address | IPv6Address

# Translation prefixes carry an IPv4 address to which the network will deliver (RFC 6052, RFC 8215).
_TRANSLATED: Final = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """The addresses a transport may connect to.

    Attributes:
        hosts: names (or literal addresses) that may resolve to anything, for internal receivers.
        networks: networks that any name may resolve to, besides the public Internet.
    """

    hosts: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def allowing(cls, *entries: str) -> Self:
        """A policy from an operator's list: each entry is a host name, an address or a network in CIDR form."""
        hosts: set[str] = set()
        networks: list[IPv4Network | IPv6Network] = []
        for entry in entries:
            try:
                networks.append(ip_network(entry))
            except ValueError:
                hosts.add(entry.lower().rstrip("."))
        return cls(frozenset(hosts), tuple(networks))

    def check_url(self, url: str) -> str:
        """Return `url` when its form is allowed.

        Raises:
            AddressRefused: it is no http or https URL with a host, or has a user, password or fragment.
        """
        if len(url) > URL_LENGTH_MAX or not _PRINTABLE.fullmatch(url):
            raise AddressRefused("A destination's URL is printable ASCII without spaces; write the name's ASCII form")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise AddressRefused("The destination's URL cannot be read") from None
        if parts.scheme not in SCHEMES:
            raise AddressRefused("A destination's URL starts with https:// or http://")
        if parts.username is not None or parts.password is not None:
            raise AddressRefused("A destination's URL holds no user name and no password")
        if not parts.hostname or parts.fragment or port == 0:
            raise AddressRefused("A destination's URL has a host, perhaps a port, and no fragment")
        return url

    def check_address(self, host: str, address: str) -> None:
        """Raise `AddressRefused` unless `host` may be reached at `address`."""
        if host.lower().rstrip(".") in self.hosts:
            return
        try:
            candidate = ip_address(address.partition("%")[0])
        except ValueError:
            raise AddressRefused("The destination's address cannot be read") from None
        if not self._is_allowed(candidate):
            raise AddressRefused(
                "The destination's name leads to an address inside a private network; list it to allow it"
            )

    def _is_allowed(self, address: IPAddress) -> bool:
        inner = _embedded(address)
        if any(candidate in network for network in self.networks for candidate in (address, *inner)):
            return True
        return all(_is_public(candidate) for candidate in (*inner,) or (address,))

    async def resolve(self, host: str, port: int, threads: Executor | None = None) -> Sequence[str]:
        """The addresses of `host`, every one of them allowed.

        Args:
            host: name or address.
            port: where the service listens.
            threads: where the system's resolver runs, which nobody can interrupt; None: the event loop's own threads.

        Raises:
            AddressRefused: at least one of them is not.
            OSError: the name does not resolve.
        """
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        found = await asyncio.get_running_loop().run_in_executor(threads, ask)
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not addresses:
            raise OSError("the name has no address")
        for address in addresses:
            self.check_address(host, address)
        return addresses


PUBLIC_ONLY: Final = AddressPolicy()


def _embedded(address: IPAddress) -> tuple[IPAddress, ...]:
    """The IPv4 addresses that an IPv6 address stands for."""
    if isinstance(address, IPv4Address):
        return ()
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return tuple(address.teredo)
    if any(address in network for network in _TRANSLATED) or int(address) >> 32 == 0:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    return ()


def _is_public(address: IPAddress) -> bool:
    return address.is_global and not (
        address.is_multicast
        or address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_reserved
        or address.is_unspecified
        or (isinstance(address, IPv6Address) and address.is_site_local)
    )
