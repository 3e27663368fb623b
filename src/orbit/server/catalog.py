"""The log events of the server by name. The names are public: what reads logs is built on them."""

from __future__ import annotations

from enum import StrEnum


class LogEvent(StrEnum):
    """What happened."""

    SERVER_STARTED = "orbit.server_started"
    SERVER_STOPPING = "orbit.server_stopping"
    SERVER_STOPPED = "orbit.server_stopped"
    REQUEST_SERVED = "orbit.request_served"
    REQUEST_FAILED = "orbit.request_failed"
    NOT_READY = "orbit.not_ready"
    READY = "orbit.ready"
    ATTEMPTS_RECOVERED = "orbit.attempts_recovered"
    RECOVER_FAILED = "orbit.recover_failed"
    SESSION_FAILED = "orbit.session_failed"
