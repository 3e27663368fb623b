"""uvicorn's HTTP protocol, with a problem instead of a sentence for what is no HTTP (API-12).

Such a request never reaches the application. It has no path to name, so `instance` is `/`.
"""

from __future__ import annotations

import json
from typing import Final

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.server.http.answering import REQUEST_ID, name_request
from orbit.wire.problems import MEDIA_TYPE, problem_of

_STATUS: Final = 400


class ProblemProtocol(H11Protocol):
    """One HTTP connection."""

    @override
    def send_400_response(self, msg: str) -> None:
        """Say that the request is malformed, and close."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            request_id = name_request({})
            error = OrbitError(ErrorCode.MALFORMED_REQUEST, "The request is not valid HTTP.")
            body = json.dumps(problem_of(error, instance="/", request_id=request_id)).encode()
            headers = [
                ("content-type", MEDIA_TYPE),
                ("content-length", str(len(body))),
                ("connection", "close"),
                (REQUEST_ID.lower(), request_id),
            ]
            response = h11.Response(status_code=_STATUS, headers=headers, reason=b"Bad Request")
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
