"""Which HTTP status means what for a delivery: the published table (F28, RTY-01, RTY-02).

No status quarantines an event. A status speaks of the endpoint, its configuration or its load; only the
consumer itself, in a well-formed answer about this very event, may call it unprocessable (DLV-05).

| Status | Code | Answered | Why |
|---|---|---|---|
| 2xx other than 200 | ack_invalid | no | a success without results is no receipt (DLV-06) |
| 3xx | dependency_unavailable | yes | redirects are never followed (F86) |
| 400, 413, 415, 422 | dependency_unavailable | no | something in this batch displeases the endpoint |
| 401, 403, 404, 405, 410, other 4xx | dependency_unavailable | yes | the configuration is wrong |
| 408 | timeout | no | |
| 429, 503 | capacity_protected | yes | with `Retry-After` |
| 504 | timeout | no | a gateway gave up on a consumer that may have begun |
| 500, 502, other 5xx | dependency_unavailable | no | the consumer may have failed at one of these |

*Answered: no* makes the batch's deliveries suspects that are retried in ever smaller batches, so that one
bad event is found and its neighbours go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from seapost.model.outcome import ErrorCode


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a status says about every delivery of the request."""

    code: ErrorCode
    answered: bool


_UNAVAILABLE_BATCH: Final = Meaning(ErrorCode.DEPENDENCY_UNAVAILABLE, answered=False)
_MISCONFIGURED: Final = Meaning(ErrorCode.DEPENDENCY_UNAVAILABLE, answered=True)
_BUSY: Final = Meaning(ErrorCode.CAPACITY_PROTECTED, answered=True)
_LATE: Final = Meaning(ErrorCode.TIMEOUT, answered=False)
NO_RECEIPT: Final = Meaning(ErrorCode.ACK_INVALID, answered=False)

STATUSES: Final[dict[int, Meaning]] = {
    HTTPStatus.BAD_REQUEST: _UNAVAILABLE_BATCH,
    HTTPStatus.REQUEST_TIMEOUT: _LATE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: _UNAVAILABLE_BATCH,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: _UNAVAILABLE_BATCH,
    HTTPStatus.UNPROCESSABLE_ENTITY: _UNAVAILABLE_BATCH,
    HTTPStatus.TOO_MANY_REQUESTS: _BUSY,
    HTTPStatus.SERVICE_UNAVAILABLE: _BUSY,
    HTTPStatus.GATEWAY_TIMEOUT: _LATE,
}


def meaning_of(status: int) -> Meaning:
    """What any status other than 200 means; the table above, and its classes for the rest."""
    known = STATUSES.get(status)
    if known is not None:
        return known
    match status // 100:
        case 2:
            return NO_RECEIPT
        case 3 | 4:
            return _MISCONFIGURED
        case _:
            return _UNAVAILABLE_BATCH
