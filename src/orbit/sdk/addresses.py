"""Where the server is, and who asks: the base URL, checked, and the token, which no text shows (SDK-08, WSS-02)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

CLIENT_NAME: Final = "orbit-sdk"
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Access:
    """A server and a credential.

    Attributes:
        http_url: base of HTTP requests, without a slash at the end.
        events_url: where the event connection is opened.
        loopback: the server is this machine; plain text is allowed, and no proxy is asked.
    """

    http_url: str
    events_url: str
    loopback: bool
    _token: str = field(repr=False)

    @classmethod
    def of(cls, base_url: str, token: str) -> Access:
        """Check both; ValueError names what is wrong, without the token."""
        parts = urlsplit(base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("base_url must be http:// or https:// with a host")
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError("base_url must have neither user, query nor fragment: a URL is no place for secrets")
        loopback = _is_loopback(parts.hostname)
        if parts.scheme == "http" and not loopback:
            raise ValueError("plain http is for this machine only; use https")
        if not _VISIBLE.fullmatch(token):
            raise ValueError("the token must be visible ASCII characters without spaces")
        return cls(
            _joined(parts, parts.scheme), _joined(parts, _WEBSOCKET[parts.scheme]) + EVENTS_PATH, loopback, token
        )

    def headers(self) -> dict[str, str]:
        """The credential as HTTP headers."""
        return {"Authorization": f"Bearer {self._token}"}


EVENTS_PATH: Final = "/v1/events/connect"
_WEBSOCKET: Final = {"http": "ws", "https": "wss"}


def segment(name: str) -> str:
    """One segment of a path; an identifier with a slash does not reach another path."""
    return quote(name, safe="") if name not in {"", ".", ".."} else "%00"


def _joined(parts: SplitResult, scheme: str) -> str:
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
